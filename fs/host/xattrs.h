#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"

namespace txfs {

/// The path under which calls that take no descriptor reach an open object,
/// also one opened with O_PATH.
[[nodiscard]] std::string ProcPath(int fd);

/// Names of all extended attributes of the object at `path`, which is followed;
/// none where the filesystem has none.
Result<std::vector<std::string>> XattrNames(const std::string& path);

/// Those of them that users may set.
Result<std::vector<std::string>> UserXattrNames(int fd);

/// The value of one of them; ENODATA, too, where the filesystem has none.
Result<std::string> XattrOf(const std::string& path, const std::string& name);

}  // namespace txfs
