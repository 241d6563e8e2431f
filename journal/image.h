#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "journal/change.h"

namespace txfs {

/// The rows of a journal's tables, uninterpreted. As a State it takes edits.
class Image final : public State {
 public:
  template <class Value>
  using ByIno = std::map<Ino, Value>;
  template <class Value>
  using ByName = std::map<std::pair<Ino, std::string>, Value>;

  ByIno<InodeRecord> inodes;
  ByName<DentryValue> dentries;  ///< by directory and name; no kAbsent
  std::map<std::pair<Ino, uint64_t>, Extent> extents;  ///< by offset
  ByName<std::string> xattrs;

  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override;
  void SetAttr(Ino ino, const Attr& attr) override;
  void SetDentry(Ino parent, const std::string& name,
                 const DentryValue& value) override;
  void EraseExtent(Ino ino, const Extent& extent) override;
  void PutExtent(Ino ino, const Extent& extent) override;
  void SetXattr(Ino ino, const std::string& name,
                const std::optional<std::string>& value) override;

  /// "inode 7", with its path if one is known. For messages; slow.
  [[nodiscard]] std::string Describe(Ino ino) const;
};

/// A name for messages: in double quotes, control characters escaped.
[[nodiscard]] std::string Quote(std::string_view name);

}  // namespace txfs
