#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "fs/tree/sparse.h"
#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// The attributes that a base object had, but for those that the origin has
/// not: device numbers, and atime.
[[nodiscard]] inline Attr AttrOf(const BaseOrigin& origin) {
  Attr attr;
  attr.type = TypeOfMode(origin.mode).value_or(FileType::kRegular);
  attr.mode = origin.mode & 07777;
  attr.uid = origin.uid;
  attr.gid = origin.gid;
  attr.nlink = origin.nlink;
  attr.size = origin.size;
  attr.base_limit = attr.type == FileType::kRegular ? origin.size : 0;
  attr.mtime = origin.mtime;
  attr.ctime = origin.ctime;
  return attr;
}

/// An InodeRecord in less memory: the attributes of most inodes follow from the
/// base object.
class CompactRecord {
 public:
  CompactRecord() = default;
  CompactRecord& operator=(InodeRecord record) {
    base = std::move(record.base);
    SetAttr(record.attr);
    if (!record.symlink.empty() || !symlink().empty()) {
      rest_.Make().symlink.Make() = std::move(record.symlink);
    }
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator InodeRecord() const {
    return {.attr = attr(), .base = base, .symlink = symlink()};
  }

  [[nodiscard]] Attr attr() const {
    if (rest_->attr) return *rest_->attr;
    return base ? Following() : Attr();
  }
  /// As attr().nlink.
  [[nodiscard]] uint32_t nlink() const {
    if (rest_->attr) return rest_->attr->nlink;
    return base ? base->nlink : 0;
  }
  [[nodiscard]] bool IsDirectory() const {
    if (rest_->attr) return rest_->attr->type == FileType::kDirectory;
    return base && S_ISDIR(base->mode);
  }
  void SetAttr(const Attr& attr) {
    atime_ = attr.atime;
    const bool follows = base && attr == Following();
    if (follows) {
      Follow();
    } else {
      rest_.Make().attr = attr;
    }
  }
  /// Gives back the attributes of the base object, except atime and the device
  /// number. Requires base origin.
  void RestoreAttr() {
    const uint64_t rdev = rest_->attr ? rest_->attr->rdev : 0;
    if (rdev == 0) return Follow();
    Attr restored = Following();
    restored.rdev = rdev;
    SetAttr(restored);
  }
  [[nodiscard]] const std::string& symlink() const { return *rest_->symlink; }

  /// If it changes, SetAttr must follow.
  std::optional<BaseOrigin> base;

 private:
  struct Rest {
    std::optional<Attr> attr;  ///< none: as Following
    Sparse<std::string> symlink;
  };

  void Follow() {
    if (!rest_->attr) return;
    rest_.Make().attr.reset();
    if (symlink().empty()) rest_.Reset();
  }

  [[nodiscard]] Attr Following() const {
    Attr attr = AttrOf(*base);
    attr.atime = atime_;
    return attr;
  }

  Timestamp atime_;
  Sparse<Rest> rest_;
};

}  // namespace txfs
