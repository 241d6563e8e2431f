#pragma once

#include <cstdint>
#include <string>

#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// What tells a directory from every other one, its copies included. Stays the
/// same when the directory is renamed and over a reboot.
struct DirectoryId {
  /// The file handle, with its type, as name_to_handle_at(2) has it; where the
  /// filesystem has no handles, the inode number.
  std::string handle;
  Timestamp birth;       ///< zero where the filesystem does not tell
  uint64_t fs_type = 0;  ///< f_type of statfs(2)
  std::string fs_uuid;   ///< FS_IOC_GETFSUUID, Linux 6.9; else empty

  /// 32 hexadecimal digits of `handle` and `birth`.
  [[nodiscard]] std::string Key() const;
  /// Whether both are of one directory. A UUID that only one kernel told is no
  /// difference.
  [[nodiscard]] bool IsSame(const DirectoryId& other) const;
};

/// Identifies the open directory `fd`. On an overlay the directory is copied up
/// first, if `settle`: that gives it another identity.
Result<DirectoryId> IdentifyDirectory(int fd, bool settle = false);

}  // namespace txfs
