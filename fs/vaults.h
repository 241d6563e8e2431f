#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/base/bytes.h"
#include "journal/base/result.h"
#include "journal/base/unique_fd.h"

namespace txfs {

/// The vaults of a store's commits, by id (docs/recovery.md, "Words").
///
/// They lie in the store where its files can be renamed into the workspace,
/// else in the workspace's own `.txfs/`.
class Vaults {
 public:
  /// `base`: the workspace's root; `store`: the store's directory. Both
  /// outlive this.
  Vaults(int base, int store);

  /// Opens vault `id`. `fresh`: it is made, empty.
  Result<UniqueFd> Open(const std::string& id, bool fresh) const;
  /// Ids of those there are.
  Result<std::vector<std::string>> Ids() const;
  /// Bytes of blocks in vault `id`; 0 when there is none.
  Result<uint64_t> Bytes(const std::string& id) const;
  /// Reads a file in a vault, as ReadFully; `path` begins with the id.
  Result<size_t> Read(const std::string& path, uint64_t offset,
                      MutableByteSpan out) const;
  Status Remove(const std::string& id) const;

 private:
  Result<UniqueFd> OpenParent(bool make) const;

  int base_;
  int store_;
  bool in_store_;
};

/// Makes a directory in the workspace root without a trace in its times.
Status MakeUnseen(int root, const char* name);

}  // namespace txfs
