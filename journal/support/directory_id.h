#pragma once

#include <cstdint>
#include <string>

#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// The identity of a directory: different from that of every other directory,
/// its copies included. Stays the same over a rename and a reboot.
struct DirectoryId {
  /// The file handle and its type, from name_to_handle_at(2); the inode number
  /// if the filesystem has no handles.
  std::string handle;
  Timestamp birth;       ///< zero if the filesystem does not record it
  uint64_t fs_type = 0;  ///< f_type of statfs(2)
  std::string fs_uuid;   ///< FS_IOC_GETFSUUID, Linux 6.9; else empty

  /// 32 hexadecimal digits of `handle` and `birth`.
  [[nodiscard]] std::string Key() const;
  /// Whether both identify the same directory. Compares the UUIDs only if both
  /// are known: an older kernel does not return them.
  [[nodiscard]] bool IsSame(const DirectoryId& other) const;
};

/// Identifies the open directory `fd`. `settle`: on an overlay, copies the
/// directory up first, because that changes its identity.
Result<DirectoryId> IdentifyDirectory(int fd, bool settle = false);

}  // namespace txfs
