#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace txfs {

/// A process and what ties it to a directory or filesystem.
struct ProcessRef {
  pid_t pid = 0;
  std::string comm;  ///< its name, as ps shows it
  std::string what;  ///< "cwd", "root", "exe", "fd 3" or "map": the first found
};

/// Processes that hold something on device `dev` (an st_dev), within directory
/// `dir` (absolute, normal) unless that is empty: working or root directory,
/// executable, open descriptors, mappings. The parent of this process comes
/// first, then by pid; this process and those that may not be looked at are
/// left out. Asks no filesystem but proc, so that a hung mount cannot block it.
std::vector<ProcessRef> ProcessesUsing(const std::string& dir, dev_t dev);

}  // namespace txfs
