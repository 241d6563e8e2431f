#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs {

/// The POSIX access control lists of an object, as extended attributes.
inline constexpr const char* kAccessAcl = "system.posix_acl_access";
inline constexpr const char* kDefaultAcl = "system.posix_acl_default";
[[nodiscard]] bool IsAclName(std::string_view name);

/// Whether a transaction shows, records and commits the attribute `name`:
/// user.* and the access control lists.
[[nodiscard]] bool IsTrackedXattr(std::string_view name);

/// A path to an open object, also one opened with O_PATH, for system calls that
/// take no descriptor.
[[nodiscard]] std::string ProcPath(int fd);

/// The names of all extended attributes of the object at `path`; follows
/// symbolic links. Empty if the filesystem does not support them.
Result<std::vector<std::string>> XattrNames(const std::string& path);

/// The names of the tracked attributes.
Result<std::vector<std::string>> TrackedXattrNames(int fd);

/// The value of an attribute. ENODATA also if the filesystem does not support
/// them.
Result<std::string> XattrOf(const std::string& path, const std::string& name);

/// Whether the filesystem of the open object supports access control lists.
[[nodiscard]] bool SupportsAcls(int fd);

}  // namespace txfs
