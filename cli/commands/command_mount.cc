#include <unistd.h>

#include <ranges>

#include "cli/commands/commands.h"
#include "cli/daemon/daemon.h"
#include "cli/mount/mount_options.h"
#include "cli/mount/mounting.h"
#include "cli/output/errors.h"

namespace txfs::cli {
namespace {

void SayWhoStandsBeneath(const MountPlan& plan) {
  if (plan.beneath.empty()) return;
  Say("warning: these processes use " + plan.daemon.workspace.path +
      " beneath the mount, where they change the workspace itself:");
  SayProcesses(plan.beneath);
  Say("hint: in each shell: cd \"$PWD\"");
}

Result<int> MountInForeground(const MountPlan& plan) {
  TRY(Serve(plan.daemon, [&](const ReadyReport& ready) {
    SayMounted(plan, ready, SayResult);
    SayWhoStandsBeneath(plan);
  }));
  return 0;
}

}  // namespace

Result<int> RunMount(const Context& context, const MountArguments& arguments) {
  MountFlags flags;
  for (const std::string& list : arguments.options) {
    TRY(ParseMountOptions(list, flags));
  }
  if (flags.remount) {
    TRY(Remount(context, arguments, flags));
    return 0;
  }
  const MountPlan plan = TRY(PlanMount(context, arguments));
  if (arguments.foreground) return MountInForeground(plan);
  TRY(MountInBackground(plan, SayResult));
  SayWhoStandsBeneath(plan);
  return 0;
}

}  // namespace txfs::cli
