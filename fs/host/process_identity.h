#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace txfs {

/// A process in /proc.
struct ProcessStat {
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start = 0;  ///< clock ticks since boot
};
/// None if there is no such process, or if it cannot be read.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

/// A process. Differs from every later process with the same number.
struct ProcessIdentity {
  pid_t pid = 0;  ///< 0: in another pid namespace, or gone
  uint64_t start = 0;

  auto operator<=>(const ProcessIdentity&) const = default;
};
/// The process that the thread `tid` belongs to.
ProcessIdentity IdentifyProcess(pid_t tid);

/// What decides whether a process keeps the set-user-ID and set-group-ID bits
/// of files that it changes.
struct FileRights {
  bool fsetid = false;        ///< CAP_FSETID in the initial user namespace
  std::vector<gid_t> groups;  ///< supplementary
};
/// Of the thread `tid`. No rights if it cannot be read.
FileRights ReadFileRights(pid_t tid);

/// The groups of this process: the effective one and the supplementary ones.
std::set<gid_t> OwnGroups();

/// Whether a pending signal will kill the process of thread `tid`, or asks it
/// to end (SIGHUP, SIGINT, SIGQUIT, SIGTERM) although it catches the signal;
/// also if that cannot be known.
bool IsToEnd(pid_t tid);

/// Whether the rules of a mount may rely on what /proc says about the process's
/// program. False in these cases:
/// - its file is on a FUSE filesystem, where a process under the rules may have
///   made it;
/// - its file is below `workspace`, to which a commit may have brought it;
/// - its path leads to another file for this process: a mount namespace can put
///   any file there;
/// - one of these cannot be checked.
///
/// Does not access a FUSE filesystem.
bool ProgramCounts(pid_t pid, const std::string& workspace);

/// Whether the process or one of its ancestors has its working or root
/// directory on `device`. Accesses no filesystem except proc.
bool DescendsFromUserOf(pid_t pid, dev_t device);
/// Whether `ancestor` is `pid` or one of its ancestors.
bool DescendsFrom(pid_t pid, pid_t ancestor);

}  // namespace txfs
