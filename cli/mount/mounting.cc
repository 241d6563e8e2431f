#include "cli/mount/mounting.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/mount/mount_options.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/rules/policy_sources.h"
#include "fs/fuse/fuse_mount.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// Where a mount goes and what it serves, absolute.
struct Paths {
  std::string workspace, mountpoint;
};

/// Without an argument it is the workspace of the mount around the working
/// directory, or that directory.
Result<std::string> DefaultWorkspace(const Context& context) {
  const auto entry = FindTxfsMount(context.directory);
  if (entry) {
    return entry->source.starts_with('/') ? entry->source : entry->mountpoint;
  }
  const auto found = TRY(FindWorkspace(context.directory));
  if (found) TRY(CheckIsNamed(*found, context.directory));
  return context.directory;
}

Result<Paths> PathsOf(const Context& context, const MountArguments& arguments) {
  Paths paths;
  paths.workspace =
      arguments.workspace
          ? TRY(ResolveDirectory(context.directory, *arguments.workspace))
          : TRY(DefaultWorkspace(context));
  paths.mountpoint =
      arguments.mountpoint
          ? TRY(ResolveDirectory(context.directory, *arguments.mountpoint))
          : paths.workspace;
  return paths;
}

/// A mount whose daemon died, to be brought back.
struct Dead {
  Paths paths;
  std::vector<std::string> stamps;  ///< of its daemon's sockets
};

/// The dead mount that the command stands in, or whose mountpoint it names and
/// nothing else.
std::optional<Dead> FindDead(const Context& context,
                             const MountArguments& arguments) {
  if (arguments.mountpoint) return {};
  const std::string at =
      arguments.workspace ? ResolvePath(context.directory, *arguments.workspace)
                          : context.directory;
  const auto entry = FindTxfsMount(at);
  const bool meant = entry && entry->source.starts_with('/') &&
                     (!arguments.workspace || entry->mountpoint == at);
  if (!meant || !IsDead(*entry)) return {};
  return Dead{.paths = {entry->source, entry->mountpoint},
              .stamps = SocketStampsOf(*entry)};
}

/// The name of the transaction that it served; "" also when nobody knows.
std::string NameOf(const Dead& dead) {
  const auto workspace = ReachWorkspace(dead.paths.workspace);
  const auto store =
      workspace ? OpenStore(*workspace) : std::unexpected(workspace.error());
  const auto open =
      store ? ListServed(**store) : std::unexpected(store.error());
  if (!open) return "";
  for (const ServedTransaction& transaction : *open) {
    if (std::ranges::find_first_of(transaction.stamps, dead.stamps) !=
        transaction.stamps.end()) {
      return transaction.summary.name;
    }
  }
  return "";
}

/// Clears dead mounts that are in the way.
Status CheckMountpointIsFree(const Paths& paths) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  for (const MountEntry& entry : table | std::views::reverse) {
    const bool here = entry.mountpoint == paths.mountpoint;
    if (!entry.is_own() || (!here && entry.source != paths.workspace)) {
      continue;
    }
    if (IsDead(entry)) {
      TRY(ClearDeadMount(entry));
    } else if (here && entry.source != paths.workspace) {
      return Fail(ErrorKind::kBusy, 0,
                  entry.mountpoint + " is already the mount of " + entry.source,
                  "`txfs umount " + QuoteShell(entry.mountpoint) + "` first");
    }
  }
  return {};
}

bool IsMountpoint(const std::string& path) {
  const auto entry = FindTxfsMount(path);
  return entry && entry->mountpoint == path;
}

std::unexpected<Error> AlreadyMounted(const std::string& workspace,
                                      const ServedTransaction& transaction) {
  const std::string& name = transaction.summary.name;
  const std::string& mountpoint = transaction.address.mountpoint;
  const std::string where = QuoteShell(mountpoint);
  return Fail(
      ErrorKind::kBusy, 0,
      (name.empty() ? workspace : "transaction " + name + " of " + workspace) +
          " is already mounted at " + mountpoint,
      "`cd " + where + "` to work in it, `txfs umount " + where +
          "` first, or begin another transaction with --name");
}

/// The transaction may be mounted elsewhere, the mountpoint show another one.
Status CheckNotMounted(const Paths& paths, const RealWorkspace& workspace,
                       const std::string& name) {
  // One that is gone, or whose disk was made anew, has none open.
  const bool is_there =
      workspace.record && Store::IsAt(workspace.record->store);
  const auto store =
      is_there ? OpenStore(workspace) : Fail(ENOENT, workspace.path);
  if (!store && store.error().code != ENOENT) {
    return std::unexpected(store.error());
  }
  if (store) {
    for (const ServedTransaction& open : TRY(ListServed(**store))) {
      // A daemon without its mount is about to end.
      if (open.summary.name == name && open.daemon == DaemonState::kRunning &&
          IsMountpoint(open.address.mountpoint)) {
        return AlreadyMounted(workspace.path, open);
      }
    }
  }
  if (!IsMountpoint(paths.mountpoint)) return {};
  return Fail(ErrorKind::kBusy, 0,
              "another transaction of " + workspace.path +
                  " is already mounted at " + paths.mountpoint,
              "name another directory: txfs mount " +
                  QuoteShell(workspace.path) + " MOUNTPOINT" +
                  (name.empty() ? "" : " --name " + name));
}

std::string RemedyFor(int code, const std::string& path) {
  if (code == ENOENT) return "create it: mkdir -p " + QuoteShell(path);
  if (code == ENOTCONN || code == ECONNABORTED) {
    return "the daemon of the mount there has just died: run the command "
           "again to clear the mount";
  }
  return "choose a directory that you can access";
}

Status CheckDirectory(const char* what, const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) {
    const int code = errno;
    return Fail(code, std::string(what) + " " + path, RemedyFor(code, path));
  }
  if (!S_ISDIR(st.st_mode)) {
    return Fail(ENOTDIR, std::string(what) + " " + path, "give a directory");
  }
  return {};
}

/// The directory at `path`, which has no links: the one to mount at.
Result<ObjectId> ObjectAt(const std::string& path) {
  struct stat st{};
  const auto fd = OpenName(path, O_DIRECTORY);
  if (!fd) {
    return Fail(fd.error().code, "mountpoint " + path, kSwappedHint);
  }
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, path);
  return ObjectId{.device = st.st_dev, .ino = st.st_ino};
}

Status CheckNesting(const Paths& paths) {
  if (paths.workspace == paths.mountpoint) return {};
  const bool inside = IsWithin(paths.mountpoint, paths.workspace);
  if (!inside && !IsWithin(paths.workspace, paths.mountpoint)) return {};
  return Fail(0,
              inside ? "the mountpoint " + paths.mountpoint +
                           " lies inside its workspace " + paths.workspace
                     : "the workspace " + paths.workspace +
                           " lies inside its mountpoint " + paths.mountpoint,
              "mount over the workspace itself (`txfs mount " +
                  QuoteShell(paths.workspace) +
                  "`), or at a directory beside it");
}

/// Whoever works in a mount must not reach what decides for txfs: not in the
/// mount, and not by a commit.
Status CheckOwnDirectories(const Paths& paths) {
  for (const auto& [own, variable] :
       {std::pair(StateDirectory(), "XDG_STATE_HOME"),
        std::pair(ConfigDirectory(), "XDG_CONFIG_HOME")}) {
    const std::string real = ResolvePath("/", own);
    const bool inside =
        IsWithin(real, paths.workspace) || IsWithin(real, paths.mountpoint);
    if (!inside) continue;
    return Fail(0,
                own +
                    ", which controls txfs, lies inside the workspace or the "
                    "mountpoint",
                "mount another directory, or set " + std::string(variable) +
                    " to a directory outside");
  }
  return {};
}

/// The same of what decides for another workspace of this user: its store.
Status CheckOtherStores(const Paths& paths) {
  std::optional<Error> found;
  TRY(ForEachRecord([&](const WorkspaceRecord& other) {
    if (!other.store_id || (!IsWithin(other.store, paths.workspace) &&
                            !IsWithin(other.store, paths.mountpoint))) {
      return;
    }
    if (!Store::IsAt(other.store)) return;
    found = Error{.code = 0,
                  .message = "the store " + other.store + " of workspace " +
                             other.path +
                             " lies inside the workspace or the mountpoint",
                  .hint = "mount a directory that does not contain the store",
                  .kind = ErrorKind::kFailed};
  }));
  if (found) return std::unexpected(*std::move(found));
  return {};
}

Status CheckOutsideMounts(const Paths& paths) {
  const auto entry = FindTxfsMount(paths.workspace);
  if (!entry) return {};
  if (entry->mountpoint == paths.workspace) {
    // Another transaction of the workspace, mounted over it, is not in the way.
    const auto shown = ReachWorkspaceOf(*entry);
    if (shown && shown->path == paths.workspace) return {};
  }
  return Fail(0,
              "the workspace " + paths.workspace +
                  " lies inside the txfs mount at " + entry->mountpoint,
              "`txfs umount " + QuoteShell(entry->mountpoint) +
                  "` first, or work in that mount");
}

Status CheckStore(const Paths& paths, const RealWorkspace& workspace,
                  const std::string& store) {
  const std::string in_use = StorePath(workspace).value_or(store);
  // Two stores of one workspace would each take the other's commits for drift.
  if (in_use != store && Store::IsAt(in_use)) {
    return Fail(0,
                "the transactions of " + paths.workspace + " are in " + in_use,
                "omit --store");
  }
  if (IsWithin(store, paths.workspace) || IsWithin(store, paths.mountpoint)) {
    return Fail(
        0,
        "the store " + store + " lies inside the workspace or the mountpoint",
        "omit --store, or give a directory outside both");
  }
  // Whoever works in a mount of that one could write to it.
  std::string around;
  TRY(ForEachRecord([&](const WorkspaceRecord& other) {
    struct stat st{};
    if (IsWithin(store, other.path) && ::lstat(other.path.c_str(), &st) == 0) {
      around = other.path;
    }
  }));
  if (around.empty()) return {};
  return Fail(0, "the store " + store + " lies inside the workspace " + around,
              "omit --store, or give a directory outside of all workspaces");
}

std::vector<ProcessRef> ProcessesBeneath(const Paths& paths) {
  struct stat st{};
  if (paths.workspace != paths.mountpoint ||
      ::stat(paths.workspace.c_str(), &st) != 0) {
    return {};
  }
  std::vector<ProcessRef> found = ProcessesUsing(paths.workspace, st.st_dev);
  std::erase_if(found, [](const ProcessRef& process) {
    return process.what != "cwd" && process.what != "root";
  });
  return found;
}

/// The flags of the filesystem of `base` that protect: in the mount, they are
/// in force, too.
Result<std::vector<std::string>> ProtectiveFlags(const UniqueFd& base) {
  struct statfs fs{};
  if (::fstatfs(base.get(), &fs) != 0) return Fail(errno, "statfs workspace");
  constexpr int64_t kNoSymfollow = 0x2000;  // ST_NOSYMFOLLOW of the kernel
  std::vector<std::string> flags;
  for (const auto& [bit, name] :
       {std::pair<int64_t, const char*>(ST_NOSUID, "nosuid"),
        std::pair<int64_t, const char*>(ST_NODEV, "nodev"),
        std::pair<int64_t, const char*>(ST_NOEXEC, "noexec"),
        std::pair<int64_t, const char*>(kNoSymfollow, "nosymfollow")}) {
    if ((fs.f_flags & bit) != 0) flags.emplace_back(name);
  }
  return flags;
}

/// Whether the mount itself has the option `name`, whose place is not the
/// first.
bool HasOption(const MountEntry& entry, const std::string& name) {
  const size_t end = entry.options.find(' ');
  const std::string options = entry.options.substr(0, end) + ",";
  return options.contains("," + name + ",");
}

/// Filesystems inside the workspace have flags of their own; their set-user-ID
/// programs and devices must not come to life, either.
void AddFlagsInside(const std::string& workspace,
                    std::vector<std::string>& flags) {
  const auto table = ReadMountTable();
  if (!table) return;
  for (const MountEntry& entry : *table) {
    if (entry.mountpoint == workspace ||
        !IsWithin(entry.mountpoint, workspace)) {
      continue;
    }
    for (const char* name : {"nosuid", "nodev"}) {
      if (HasOption(entry, name)) flags.emplace_back(name);
    }
  }
}

/// What the user asked for; the last options count.
Result<std::vector<std::string>> KernelOptions(const MountFlags& flags,
                                               const UniqueFd& base,
                                               const Paths& paths) {
  std::vector<std::string> options = flags.kernel;
  std::vector<std::string> protective = TRY(ProtectiveFlags(base));
  AddFlagsInside(paths.workspace, protective);
  std::ranges::move(protective, std::back_inserter(options));
  return options;
}

/// What -o and --store say about the store.
std::optional<std::string> StoreGiven(const Context& context,
                                      const MountFlags& flags) {
  if (context.store) return context.store;
  if (flags.store) return ResolvePath(context.directory, *flags.store);
  return std::nullopt;
}

/// The store that the mount uses; makes the workspace's record, if it has none.
Result<std::string> PlanStore(const Paths& paths, RealWorkspace& workspace,
                              const std::optional<std::string>& given) {
  if (given) TRY(CheckStore(paths, workspace, *given));
  const auto lost = [&] {
    return workspace.record && workspace.record->store_id &&
           !Store::IsAt(workspace.record->store);
  };
  if (lost() && !given) return StoreIsLost(workspace);
  const bool is_recorded =
      workspace.record && (!given || *given == workspace.record->store);
  if (!is_recorded || lost()) {
    workspace.record =
        TRY(MakeRecord(workspace.base->get(), paths.workspace, given));
  }
  TRY(OpenRecordedStore(*workspace.record));
  return workspace.record->store;
}

/// The rules that the mount begins with, and where to read them again.
Status PlanPolicy(const Context& context, const Paths& paths,
                  const RealWorkspace& workspace, const MountFlags& flags,
                  MountPlan& plan) {
  PolicyChoice choice{.builtin = !flags.no_default_policy,
                      .without = flags.without_rules,
                      .files = {}};
  for (const std::string& path : flags.policies) {
    choice.files.push_back(MakeAbsolute(context.directory, path));
  }
  PolicySetup& policy = plan.daemon.policy;
  policy.sources = TRY(PolicySources(paths.workspace, choice));
  const Reach reach{.workspace = paths.workspace,
                    .mountpoint = paths.mountpoint};
  TRY(CheckOutOfReach(policy.sources, reach));
  policy.texts =
      TRY(policy::ReadSources(policy.sources, workspace.base->get()));
  auto rules = TRY(policy::Compile(policy.texts));
  TRY(CheckHookOutOfReach(rules.get(), reach));
  plan.daemon.workspace.filesystem.policy = std::move(rules);
  return {};
}

}  // namespace

// Its store may be old and its directory large, such as a home.
Status CheckIsNamed(const std::string& workspace,
                    const std::string& directory) {
  if (workspace == directory) return {};
  const auto here = CurrentDirectory();
  const bool stands_here = here && *here == directory;
  return Fail(ErrorKind::kUsage, 0,
              directory + " lies inside the workspace " + workspace +
                  ", which is not mounted there",
              "name one: `txfs mount " +
                  (stands_here ? "." : QuoteShell(directory)) +
                  "` mounts this directory alone, `txfs mount " +
                  QuoteShell(workspace) + "` the workspace around it");
}

Status ClearDeadMount(const MountEntry& entry) {
  const std::vector<std::string> stamps = SocketStampsOf(entry);
  TRY(UnmountPath(entry.mountpoint, true, entry.device()));
  // Who mounted again since has sockets of its own.
  RemoveSockets(entry, stamps);
  Say("cleared the dead mount at " + entry.mountpoint +
      ": its daemon was gone; acknowledged changes are in the transaction");
  return {};
}

Result<MountPlan> PlanMount(const Context& context,
                            const MountArguments& arguments) {
  MountFlags flags{.remount = false,
                   .read_only = {},
                   .allow_other = arguments.allow_other,
                   .as_owner = false,
                   .fsname = {},
                   .store = {},
                   .name = {},
                   .policies = arguments.policies,
                   .no_default_policy = arguments.no_default_policy,
                   .without_rules = arguments.without_rules,
                   .kernel = {}};
  for (const std::string& list : arguments.options) {
    TRY(ParseMountOptions(list, flags));
  }
  std::string name = arguments.name.value_or(flags.name.value_or(""));
  const bool named = arguments.name || flags.name;
  if (named) TRY(CheckTransactionName(name));
  for (const auto& given : {arguments.workspace, arguments.mountpoint}) {
    if (given && given->empty()) {
      return Fail(ErrorKind::kUsage, 0, "the path of a directory is empty",
                  "name the workspace, or leave it out");
    }
  }
  const std::optional<Dead> dead = FindDead(context, arguments);
  const auto find_paths = [&]() -> Result<Paths> {
    if (dead) return dead->paths;
    return PathsOf(context, arguments);
  };
  // Twice: behind a dead mount links cannot be resolved.
  const Paths behind = TRY(find_paths());
  TRY(CheckMountpointIsFree(behind));
  const Paths paths = TRY(find_paths());
  if (dead && !named) name = NameOf(*dead);
  if (paths.workspace == "/" || paths.mountpoint == "/") {
    return Fail(0, "the root directory / cannot be a workspace or a mountpoint",
                "name a directory below it");
  }
  TRY(CheckMountpointIsFree(paths));
  TRY(CheckOutsideMounts(paths));
  TRY(CheckDirectory("workspace", paths.workspace));
  TRY(CheckDirectory("mountpoint", paths.mountpoint));
  TRY(CheckNesting(paths));
  TRY(CheckOwnDirectories(paths));
  TRY(CheckOtherStores(paths));

  MountPlan plan;
  RealWorkspace workspace = TRY(ReachWorkspace(paths.workspace));
  SayIfForeign(workspace);
  TRY(CheckNotMounted(paths, workspace, name));
  plan.daemon.workspace.path = paths.workspace;
  plan.daemon.workspace.name = name;
  plan.daemon.workspace.filesystem.is_for_others = flags.allow_other;
  Retention& retention = plan.daemon.workspace.retention;
  retention.commits = arguments.keep.commits.value_or(retention.commits);
  retention.bytes = arguments.keep.bytes.value_or(retention.bytes);
  TRY(PlanPolicy(context, paths, workspace, flags, plan));
  const ObjectId checked = TRY(ObjectAt(paths.mountpoint));
  plan.daemon.mount = {
      .mountpoint = paths.mountpoint,
      .checked = checked,
      .source = flags.fsname.value_or(paths.workspace),
      .allow_other = flags.allow_other,
      .read_only = flags.read_only.value_or(false),
      .kernel_options = TRY(KernelOptions(flags, *workspace.base, paths)),
      .threads = 0};
  plan.daemon.log_path = LogPath(paths.mountpoint);
  plan.beneath = ProcessesBeneath(paths);
  plan.around = TRY(FindWorkspace(ResolvePath(paths.workspace, "..")));
  plan.daemon.workspace.store =
      TRY(PlanStore(paths, workspace, StoreGiven(context, flags)));
  return plan;
}

Status Remount(const Context& context, const MountArguments& arguments,
               const MountFlags& flags) {
  const std::string given =
      arguments.mountpoint.value_or(arguments.workspace.value_or("."));
  TRY(CheckWay(context.directory, given));
  const std::string mountpoint = ResolvePath(context.directory, given);
  const auto entry = FindAnyTxfsMount(mountpoint);
  if (!entry || entry->mountpoint != mountpoint) {
    return Fail(ErrorKind::kUsage, 0,
                mountpoint + " is not the mountpoint of a txfs mount",
                "`findmnt -t fuse.txfs` lists the mounts");
  }
  std::vector<std::string> options = flags.kernel;
  if (flags.read_only) options.emplace_back(*flags.read_only ? "ro" : "rw");
  const bool loosens =
      std::ranges::any_of(options, [&](const std::string& option) {
        return (option == "suid" || option == "dev" || option == "exec") &&
               HasOption(*entry, "no" + option);
      });
  if (loosens) {
    const RealWorkspace workspace = TRY(ReachWorkspaceOf(*entry));
    std::vector<std::string> stay = TRY(ProtectiveFlags(*workspace.base));
    AddFlagsInside(workspace.path, stay);
    std::ranges::move(stay, std::back_inserter(options));
  }
  return RemountFuse(*entry, options);
}

void SayProcesses(const std::vector<ProcessRef>& processes) {
  constexpr size_t kShown = 10;
  for (const ProcessRef& process : processes | std::views::take(kShown)) {
    Say("  " + std::to_string(process.pid) + " " + process.comm +
        (process.pid == ::getppid() ? " (this shell), " : ", ") + process.what);
  }
  if (processes.size() > kShown) {
    Say("  and " + std::to_string(processes.size() - kShown) + " more");
  }
}

void SayMounted(const MountPlan& plan, const ReadyReport& ready,
                PrintLineTo print) {
  SayFinished(ready.finished);
  const std::string& name = plan.daemon.workspace.name;
  print("transaction " + ready.transaction +
        (name.empty() ? "" : " (" + name + ")") +
        (ready.begun ? " begun" : " resumed"));
  print("mounted " + plan.daemon.workspace.path + " at " +
        plan.daemon.mount.mountpoint);
  if (plan.around) {
    Say("note: it lies inside the workspace " + *plan.around +
        ": a commit of one of them changes the base of the other");
  }
}

Status MountInBackground(const MountPlan& plan, PrintLineTo print) {
  const auto ready = SpawnDaemon(plan.daemon);
  const std::string& mountpoint = plan.daemon.mount.mountpoint;
  // It was none when this was planned; whatever stood in the way, that is why.
  if (!ready && IsMountpoint(mountpoint)) {
    return Fail(
        ErrorKind::kBusy, 0,
        "another process has just mounted at " + mountpoint + " (" +
            ready.error().message + ")",
        "`txfs -C " + QuoteShell(mountpoint) + " status` shows that mount");
  }
  SayMounted(plan, TRY(ready), print);
  return {};
}

}  // namespace txfs::cli
