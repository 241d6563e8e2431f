#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/daemon/daemon.h"
#include "cli/locate/context.h"
#include "cli/mount/mount_arguments.h"
#include "fs/host/mount_table.h"
#include "fs/host/processes.h"

namespace txfs::cli {

/// What a mount will be, after everything that can be known beforehand was
/// checked.
struct MountPlan {
  DaemonOptions daemon;
  std::vector<ProcessRef> beneath;  ///< stand in what is mounted over
  /// A workspace that this one lies in.
  std::optional<std::string> around = {};
};

/// Clears dead mounts that are in the way. Errors: paths that are missing or
/// are no directories, mounted already (kBusy), one inside the other.
Result<MountPlan> PlanMount(const Context& context,
                            const MountArguments& arguments);

/// Says on stderr which transaction is mounted where.
void SayMounted(const MountPlan& plan, const ReadyReport& ready);

/// Mounts in the background and says so on stderr.
Status MountInBackground(const MountPlan& plan);

/// "1234 bash (this shell), cwd", one a line, at most ten.
void SayProcesses(const std::vector<ProcessRef>& processes);

/// Detaches the dead mount `entry` and removes its daemon's socket; says so on
/// stderr.
Status ClearDeadMount(const MountEntry& entry);

}  // namespace txfs::cli
