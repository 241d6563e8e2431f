#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace txfs {

/// A process and what ties it to a directory or filesystem.
struct ProcessRef {
  pid_t pid = 0;
  std::string comm;  ///< its name, as ps shows it
  std::string what;  ///< "cwd", "root", "exe", "fd 3" or "map": the first
                     ///< found; "mount namespace"
};

/// Processes that hold something on device `dev` (an st_dev), within directory
/// `dir` (absolute, normal) unless that is empty: working or root directory,
/// executable, open descriptors, mappings. The parent of this process comes
/// first, then by pid; this process and those that may not be looked at are
/// left out. Asks no filesystem but proc, so that a hung mount cannot block it.
std::vector<ProcessRef> ProcessesUsing(const std::string& dir, dev_t dev);

/// Of each other mount namespace in which device `dev` is mounted, a process.
std::vector<ProcessRef> ProcessesMounting(dev_t dev);

/// Whether the working or root directory of process `pid` is on `device`.
bool HasDirectoryOn(pid_t pid, dev_t device);

/// All processes of this pid namespace.
std::vector<pid_t> ListProcesses();

/// A mapping, as /proc/PID/maps shows it.
struct Mapping {
  std::string range;  ///< "FROM-TO", its name in /proc/PID/map_files
  bool is_shared = false;
  bool may_store = false;
  dev_t device = 0;  ///< 0, as the inode: of no file
  ino_t ino = 0;
  std::string path;
};

/// Shows the mappings of process `pid` to `visit` until that returns false;
/// none of a process that may not be looked at.
void ForEachMapping(pid_t pid,
                    const std::function<bool(const Mapping&)>& visit);

/// The same of those through which it may store into a file. Where the kernel
/// can choose them (Linux 6.11), the others cost nothing.
void ForEachStoringMapping(pid_t pid,
                           const std::function<bool(const Mapping&)>& visit);

}  // namespace txfs
