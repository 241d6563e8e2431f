#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace txfs {

/// A process and its use of a directory or filesystem.
struct ProcessRef {
  pid_t pid = 0;
  std::string comm;  ///< its name, as in ps
  std::string what;  ///< the first use found: "cwd", "root", "exe", "fd 3",
                     ///< "map"; or "mount namespace"
};

/// Finds processes that use device `dev` (an st_dev), by working or root
/// directory, executable, open descriptors or mappings. `dir` (absolute,
/// normal): only within this directory; empty: anywhere. The parent of this
/// process comes first, then by pid. Leaves out this process, and processes
/// that it may not read. Accesses no filesystem except proc, so that a hung
/// mount cannot block it.
std::vector<ProcessRef> ProcessesUsing(const std::string& dir, dev_t dev);

/// One process for each other mount namespace in which device `dev` is mounted.
std::vector<ProcessRef> ProcessesMounting(dev_t dev);

/// Whether the working or root directory of process `pid` is on `device`.
bool HasDirectoryOn(pid_t pid, dev_t device);

/// All processes of this pid namespace.
std::vector<pid_t> ListProcesses();

/// A mapping from /proc/PID/maps.
struct Mapping {
  std::string range;  ///< "FROM-TO", the name in /proc/PID/map_files
  bool is_shared = false;
  bool may_store = false;
  dev_t device = 0;  ///< 0, like `ino`, if it has no file
  ino_t ino = 0;
  std::string path;
};

/// Calls `visit` with the mappings of process `pid` until it returns false.
/// Visits none if this process may not read them.
void ForEachMapping(pid_t pid,
                    const std::function<bool(const Mapping&)>& visit);

/// The same for the writable shared mappings of files. Where the kernel can
/// filter them (Linux 6.11), other mappings cost nothing.
void ForEachStoringMapping(pid_t pid,
                           const std::function<bool(const Mapping&)>& visit);

}  // namespace txfs
