#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"

namespace txfs {

/// A path to an open object, also one opened with O_PATH, for system calls that
/// take no descriptor.
[[nodiscard]] std::string ProcPath(int fd);

/// The names of all extended attributes of the object at `path`; follows
/// symbolic links. Empty if the filesystem does not support them.
Result<std::vector<std::string>> XattrNames(const std::string& path);

/// The names of the user.* attributes.
Result<std::vector<std::string>> UserXattrNames(int fd);

/// The value of an attribute. ENODATA also if the filesystem does not support
/// them.
Result<std::string> XattrOf(const std::string& path, const std::string& name);

}  // namespace txfs
