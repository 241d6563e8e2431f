#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/mount/mounting.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "fs/fuse/fuse_mount.h"

namespace txfs::cli {
namespace {

constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

/// The mountpoint to go to; mounts if it has to.
struct Target {
  std::string mountpoint, workspace;
};

Target TargetOf(const std::string& mountpoint) {
  const auto entry = FindTxfsMount(mountpoint);
  return {.mountpoint = mountpoint,
          .workspace = entry ? entry->source : mountpoint};
}

/// The open transaction that is meant; none when one is to be begun.
Result<std::optional<ServedTransaction>> FindOpen(
    const Context& context, const RealWorkspace& workspace) {
  const std::unique_ptr<Store> store = TRY(OpenStore(workspace));
  const std::vector<ServedTransaction> open = TRY(ListServed(*store));
  if (open.empty() && !context.transaction) {
    return std::optional<ServedTransaction>();
  }
  return std::optional(
      TRY(ChooseTransaction(open, context.transaction, workspace.path)));
}

Result<Target> FindTarget(Context context,
                          const std::optional<std::string>& workspace) {
  MountArguments arguments;
  if (workspace) {
    context.directory = TRY(ResolveDirectory(context.directory, *workspace));
    arguments.workspace = workspace->empty() ? "" : context.directory;
  }
  const auto around = FindTxfsMount(context.directory);
  const bool dead = around && IsDead(*around);
  if (around && !dead && !context.transaction) {
    return TargetOf(around->mountpoint);
  }
  if (dead) {
    TRY(ClearDeadMount(*around));
    if (around->source.starts_with('/')) context.directory = around->source;
    arguments.workspace = context.directory;
  }
  const bool known = context.store || FindTxfsMount(context.directory) ||
                     TRY(FindWorkspace(context.directory)).has_value();
  if (known) {
    const RealWorkspace real = TRY(LocateWorkspace(context)).real;
    const auto open = TRY(FindOpen(context, real));
    if (open && open->daemon == DaemonState::kRunning) {
      return TargetOf(open->address.mountpoint);
    }
    if (!context.store && !context.transaction) {
      TRY(CheckIsNamed(real.path, context.directory));
    }
    arguments.workspace = real.path;
    if (open && !open->summary.name.empty()) {
      arguments.name = open->summary.name;
    }
  }
  const MountPlan plan = TRY(PlanMount(context, arguments));
  // stdout is the command's.
  TRY(MountInBackground(plan, Say));
  return Target{.mountpoint = plan.daemon.mount.mountpoint,
                .workspace = plan.daemon.workspace.path};
}

/// The working directory as the mount shows it; its root when it is elsewhere
/// or is not there.
std::string PlaceInMount(const Context& context, const Target& target) {
  auto below = RelativeTo(context.directory, target.mountpoint);
  if (!below) below = RelativeTo(context.directory, target.workspace);
  return JoinPath(target.mountpoint, below.value_or(""));
}

/// Whether the working directory is really in the mount and not beneath it.
bool IsInside(const std::string& mountpoint) {
  const auto entry = FindTxfsMount(mountpoint);
  struct statfs fs{};
  struct stat st{};
  return entry && ::statfs(".", &fs) == 0 && fs.f_type == FUSE_SUPER_MAGIC &&
         ::stat(".", &st) == 0 && st.st_dev == entry->device();
}

Status Enter(const Context& context, const Target& target) {
  std::string directory = PlaceInMount(context, target);
  if (::chdir(directory.c_str()) != 0) {
    directory = target.mountpoint;
    if (::chdir(directory.c_str()) != 0) {
      return Fail(errno, "cannot enter " + directory);
    }
  }
  if (!IsInside(target.mountpoint)) {
    return Fail(0, directory + " is not in the mount at " + target.mountpoint,
                "something else is mounted over it: see `findmnt`");
  }
  ::setenv("PWD", directory.c_str(), 1);
  return {};
}

int Execute(std::vector<std::string> command) {
  if (command.empty()) {
    const char* shell = std::getenv("SHELL");
    command = {shell != nullptr && shell[0] != 0 ? shell : "/bin/sh"};
  }
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int code = errno;
  static_cast<void>(Report({.code = code,
                            .message = "cannot run " + command[0],
                            .hint = "",
                            .kind = ErrorKind::kFailed}));
  return code == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace

Result<int> RunEnter(const Context& context,
                     const std::optional<std::string>& workspace) {
  const Target target = TRY(FindTarget(context, workspace));
  TRY(Enter(context, target));
  return Execute(context.trailing);
}

}  // namespace txfs::cli
