#pragma once

#include <string>
#include <vector>

#include "journal/base/result.h"

namespace txfs {

/// The path under which calls that take no descriptor reach an open object,
/// also one opened with O_PATH.
[[nodiscard]] std::string ProcPath(int fd);

/// Names of all extended attributes of the object at `path`, which is followed;
/// none where the filesystem has none.
Result<std::vector<std::string>> XattrNames(const std::string& path);

}  // namespace txfs
