#include <unistd.h>

#include <ranges>

#include "cli/commands/commands.h"
#include "cli/daemon/daemon.h"
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
    SayMounted(plan, ready);
    SayWhoStandsBeneath(plan);
  }));
  return 0;
}

}  // namespace

Result<int> RunMount(const Context& context, const MountArguments& arguments) {
  const MountPlan plan = TRY(PlanMount(context, arguments));
  if (arguments.foreground) return MountInForeground(plan);
  TRY(MountInBackground(plan));
  SayWhoStandsBeneath(plan);
  return 0;
}

}  // namespace txfs::cli
