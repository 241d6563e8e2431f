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

/// What stands at the destination of a rename.
struct RenameEnd {
  FileType type = FileType::kRegular;
  bool is_empty = true;  ///< directory: has no entries
};

/// Whether `source` may take the place of `victim`: EISDIR, ENOTDIR, ENOTEMPTY.
Status CheckReplace(FileType source, const RenameEnd& victim);

/// Whether `source` may be renamed to a directory on another filesystem that is
/// mounted in the base. EXDEV, as without txfs, for directories and files of
/// several names; others a commit copies.
Status CheckCrossing(const Attr& source);

/// EFBIG when [offset, offset + length) passes kMaxFileSize.
Status CheckRange(uint64_t offset, uint64_t length);

/// Name of an attribute that may be set: user.*, at most 255 bytes (ERANGE),
/// value at most 64 KiB (E2BIG). EOPNOTSUPP for other namespaces.
Status CheckXattr(std::string_view name, size_t value_size);

/// `mode` after a write, truncation or chown by somebody without privilege:
/// set-user-ID goes; set-group-ID goes where the group may execute.
[[nodiscard]] uint32_t WithoutPrivileges(uint32_t mode);

}  // namespace txfs
