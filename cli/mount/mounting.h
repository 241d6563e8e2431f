#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/daemon/daemon.h"
#include "cli/locate/context.h"
#include "cli/mount/mount_arguments.h"
#include "cli/mount/mount_options.h"
#include "fs/host/mount_table.h"
#include "fs/host/processes.h"

namespace txfs::cli {

/// The parameters of a mount, after all checks that are possible in advance.
struct MountPlan {
  DaemonOptions daemon;
  std::vector<ProcessRef> beneath;  ///< use the directory beneath the mount
  /// A workspace in which this one lies.
  std::optional<std::string> around = {};
};

/// Plans a mount. Clears dead mounts that are in the way. Errors: a path is
/// missing or is not a directory, is already mounted (kBusy), or one lies
/// inside the other.
Result<MountPlan> PlanMount(const Context& context,
                            const MountArguments& arguments);

/// Changes the flags of the mount at the mountpoint of `arguments`, or at the
/// only path given. kUsage if nothing is mounted there.
Status Remount(const Context& context, const MountArguments& arguments,
               const MountFlags& flags);

/// kUsage unless `workspace`, which a command found around `directory` and is
/// about to mount, is that directory: the user has to name it.
Status CheckIsNamed(const std::string& workspace, const std::string& directory);

/// Prints one line: Say, or SayResult where the mount is what was asked for.
using PrintLineTo = void (*)(std::string_view line);

/// Reports which transaction is mounted where.
void SayMounted(const MountPlan& plan, const ReadyReport& ready,
                PrintLineTo print);

/// Mounts in the background and reports it.
Status MountInBackground(const MountPlan& plan, PrintLineTo print);

/// Lists processes on stderr: "1234 bash (this shell), cwd", one a line, at
/// most ten.
void SayProcesses(const std::vector<ProcessRef>& processes);

/// Detaches the dead mount `entry` and removes its daemon's sockets. Reports it
/// on stderr.
Status ClearDeadMount(const MountEntry& entry);

}  // namespace txfs::cli
