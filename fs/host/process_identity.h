#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace txfs {

/// What /proc says of a process.
struct ProcessStat {
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start = 0;  ///< in clock ticks since boot
};
/// None: there is no such process, or it may not be looked at.
std::optional<ProcessStat> ReadProcessStat(pid_t pid);

/// A process, which no later one of the same number is equal to.
struct ProcessIdentity {
  pid_t pid = 0;  ///< 0: of another pid namespace, or gone
  uint64_t start = 0;

  auto operator<=>(const ProcessIdentity&) const = default;
};
/// The process that the thread `tid` belongs to.
ProcessIdentity IdentifyProcess(pid_t tid);

/// Whether a signal waits for the thread `tid` that kills its process, or asks
/// it to end although it is caught (SIGHUP, SIGINT, SIGQUIT, SIGTERM); also
/// when that cannot be known.
bool IsToEnd(pid_t tid);

/// Whether what /proc says of the process's program counts for the rules of a
/// mount: not when its file lies on a FUSE filesystem, where whoever is to be
/// held by the rules may have made it, or below `workspace`, to which a commit
/// brings it; nor when its path leads to another file for this process: what a
/// mount namespace of its own puts there is no program of the machine's. Nor
/// when that cannot be known. Asks no FUSE filesystem.
bool ProgramCounts(pid_t pid, const std::string& workspace);

/// Whether the process, or one that it descends from, has its working or root
/// directory on `device`. Asks no filesystem but proc.
bool DescendsFromUserOf(pid_t pid, dev_t device);
/// Whether `ancestor` started `pid`, at whatever remove; also when they are the
/// same.
bool DescendsFrom(pid_t pid, pid_t ancestor);

}  // namespace txfs
