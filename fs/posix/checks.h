#pragma once

#include <string_view>

#include "fs/posix/filesystem.h"
#include "journal/change.h"
#include "journal/support/result.h"

namespace txfs {

inline constexpr size_t kMaxName = 255;              ///< bytes
inline constexpr uint64_t kMaxFileSize = INT64_MAX;  ///< bytes

// The rules of POSIX as pure functions.

/// ENAMETOOLONG over kMaxName bytes; EINVAL for "", ".", ".." and slashes.
Status CheckName(std::string_view name);

/// The object at the destination of a rename.
struct RenameEnd {
  FileType type = FileType::kRegular;
  bool is_empty = true;  ///< directory: has no entries
};

/// Whether `source` may take the place of `victim`: EISDIR, ENOTDIR, ENOTEMPTY.
Status CheckReplace(FileType source, const RenameEnd& victim);

/// EXDEV unless `source` may be renamed into a directory on another filesystem
/// mounted in the base. As without txfs, directories and files with several
/// hard links may not; a commit copies other files.
Status CheckCrossing(const Attr& source);

/// EFBIG when [offset, offset + length) passes kMaxFileSize.
Status CheckRange(uint64_t offset, uint64_t length);

/// Checks an extended attribute to set: EOPNOTSUPP unless it is tracked
/// (IsTrackedXattr), EINVAL if nothing follows "user." or `value` is not an
/// access control list, ERANGE over 255 bytes, E2BIG for a value over 64 KiB.
Status CheckXattr(std::string_view name, std::string_view value);

/// `mode` after a write, truncation or chown by an unprivileged process:
/// without set-user-ID, and without set-group-ID if the group may execute, or
/// if the process is not in the group.
[[nodiscard]] uint32_t WithoutPrivileges(uint32_t mode, bool is_in_group);

}  // namespace txfs
