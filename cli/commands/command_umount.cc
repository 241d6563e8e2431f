#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/mount/mounting.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "fs/fuse/fuse_mount.h"

namespace txfs::cli {
namespace {

/// How long a daemon is waited for that may have to serve on.
constexpr int kWaitMs = 1000;

std::optional<MountEntry> MountAt(const std::string& mountpoint) {
  auto entry = FindTxfsMount(mountpoint);
  if (entry && entry->mountpoint != mountpoint) entry.reset();
  return entry;
}

std::unexpected<Error> StillServed(const ServedTransaction& transaction) {
  const std::string pid = std::to_string(transaction.pid);
  return Fail(ErrorKind::kBusy, 0,
              "the mount at " + transaction.address.mountpoint +
                  " is detached, but process " + pid +
                  " serves it until the last process has left it",
              "end the processes that still use it, or `kill " + pid +
                  "`: acknowledged changes are not lost");
}

/// The mount around the directory of `context`, or that of a transaction of the
/// workspace it is in.
Result<std::optional<MountEntry>> FindMount(const Context& context) {
  const auto around = FindTxfsMount(context.directory);
  if (around && !context.transaction) return around;
  if (!around && !context.store && !TRY(FindWorkspace(context.directory))) {
    return std::optional<MountEntry>();
  }
  const RealWorkspace workspace = TRY(LocateWorkspace(context)).real;
  const std::unique_ptr<Store> store = TRY(OpenStore(workspace));
  std::vector<ServedTransaction> open = TRY(ListServed(*store));
  if (!context.transaction) {
    std::vector<ServedTransaction> detached;
    std::erase_if(open, [&](const ServedTransaction& transaction) {
      if (MountAt(transaction.address.mountpoint)) return false;
      if (transaction.daemon == DaemonState::kRunning) {
        detached.push_back(transaction);
      }
      return true;
    });
    if (!open.empty()) detached.clear();
    if (!detached.empty()) return StillServed(detached.front());
    if (open.empty()) return std::optional<MountEntry>();
  }
  const ServedTransaction chosen =
      TRY(ChooseTransaction(open, context.transaction, workspace.path));
  auto entry = MountAt(chosen.address.mountpoint);
  // Where one died, another one may be mounted.
  const bool is_its =
      chosen.daemon == DaemonState::kRunning || (entry && IsDead(*entry));
  if (entry && is_its) return entry;
  return Fail(0, "transaction " + *context.transaction + " is not mounted",
              "`txfs list` shows the mounted transactions");
}

/// "bash (12, this shell: cwd), vim (34: fd 3)", at most ten.
std::string NameProcesses(const std::vector<ProcessRef>& processes) {
  constexpr size_t kShown = 10;
  if (processes.empty()) return "a process that cannot be seen from here";
  std::string names =
      Join(processes | std::views::take(kShown), [](const ProcessRef& process) {
        return process.comm + " (" + std::to_string(process.pid) +
               (process.pid == ::getppid() ? ", this shell: " : ": ") +
               process.what + ")";
      });
  if (processes.size() > kShown) {
    names += " and " + std::to_string(processes.size() - kShown) + " more";
  }
  return names;
}

/// How many operations wait there for an answer; 0, too, when nobody tells.
size_t CountWaiting(const MountEntry& entry) {
  auto daemon = ConnectDaemon(AddressOf(entry), kWaitMs);
  if (!daemon) return 0;
  const auto pending = Client(std::move(*daemon)).Pending();
  return pending ? pending->size() : 0;
}

/// Mountpoints inside of `entry`, in the order in which they can be unmounted.
std::vector<std::string> MountedInside(const MountEntry& entry) {
  std::vector<std::string> inside;
  const auto table = ReadMountTable();
  if (!table) return inside;
  for (const MountEntry& mount : *table | std::views::reverse) {
    if (mount.mountpoint != entry.mountpoint &&
        IsWithin(mount.mountpoint, entry.mountpoint)) {
      inside.push_back(mount.mountpoint);
    }
  }
  return inside;
}

Error BusyError(const MountEntry& entry) {
  const std::vector<std::string> inside = MountedInside(entry);
  if (!inside.empty()) {
    const bool one = inside.size() == 1;
    return {.code = 0,
            .message = (one ? "another filesystem is mounted inside "
                            : "other filesystems are mounted inside ") +
                       entry.mountpoint + ": " + Join(inside),
            .hint = "`umount " + QuoteShell(inside.front()) +
                    "` first, then try again; `txfs umount --lazy` detaches "
                    "all of them at once",
            .kind = ErrorKind::kBusy};
  }
  if (const size_t waiting = CountWaiting(entry)) {
    const bool one = waiting == 1;
    return {.code = 0,
            .message = Count(waiting, "operation") + " in " + entry.mountpoint +
                       (one ? " waits" : " wait") + " for an answer",
            .hint = "`txfs -C " + QuoteShell(entry.mountpoint) +
                    " pending` lists them, for `approve` and `deny`; "
                    "`txfs umount --lazy` denies them",
            .kind = ErrorKind::kBusy};
  }
  return {.code = 0,
          .message = entry.mountpoint + " is in use by " +
                     NameProcesses(ProcessesUsing("", entry.device())),
          .hint =
              "leave it (`cd /`) or end these processes, then try again; "
              "`txfs umount --lazy` detaches it at once",
          .kind = ErrorKind::kBusy};
}

/// Where this process's mount namespace has the filesystem `device`.
std::vector<std::string> PlacesHere(dev_t device) {
  std::vector<std::string> places;
  const auto table = ReadMountTable("self");
  if (!table) return places;
  for (const MountEntry& mount : *table) {
    if (mount.device() == device) places.push_back(mount.mountpoint);
  }
  return places;
}

void SayMountedElsewhere(const MountEntry& entry, pid_t daemon) {
  const std::vector<std::string> here = PlacesHere(entry.device());
  const std::string served =
      ", and process " + std::to_string(daemon) + " still serves ";
  const std::string begin = "waiting: " + entry.mountpoint + " is unmounted";
  if (!here.empty()) {
    Say(begin + ", but bound to " + Join(here) + served + "that: `umount " +
        QuoteShell(here.front()) + "`");
    return;
  }
  Say(begin + " here, but other mount namespaces have it" + served +
      "them: " + NameProcesses(ProcessesMounting(entry.device())));
}

/// Returns the daemon's reply, after it ended; an empty one where none answers.
Result<Frame> AskDaemon(const MountEntry& entry, bool lazy) {
  const auto daemon = ConnectDaemon(AddressOf(entry));
  if (!daemon &&
      (daemon.error().code == EPERM || daemon.error().code == ETIMEDOUT)) {
    return std::unexpected(daemon.error());
  }
  // Its socket is gone, say after a cleanup of the runtime directory: the
  // daemon drains and ends when the mount is.
  if (!daemon) {
    TRY(UnmountPath(entry.mountpoint, lazy, entry.device()));
    return Frame{};
  }
  Frame reply = TRY((*daemon)->Call({{"request", "unmount"}, {"lazy", lazy}}));
  bool serving = !lazy && GetBool(reply.header, "serving");
  // In a mount namespace of its own this process still has a copy of it.
  const std::vector<std::string> here = PlacesHere(entry.device());
  if (std::ranges::find(here, entry.mountpoint) != here.end()) {
    if (!UnmountPath(entry.mountpoint, lazy, entry.device())) {
      // In a user namespace it is locked; who waited would wait for itself.
      Say("process " + std::to_string((*daemon)->pid()) + " still serves " +
          entry.mountpoint + " until this mount namespace ends");
      return reply;
    }
    serving = serving && !TRY((*daemon)->AwaitExit(kWaitMs));
  }
  if (serving) SayMountedElsewhere(entry, (*daemon)->pid());
  const bool ended = TRY((*daemon)->AwaitExit(lazy ? kWaitMs : -1));
  if (!ended) {
    Say("the daemon (" + std::to_string((*daemon)->pid()) + ") still serves " +
        entry.mountpoint + " until the last process has left it");
  }
  return reply;
}

/// Whether the transaction that was mounted is no more: one that only followed
/// another one goes when nothing was done in it.
bool IsGone(const Frame& unmounted) {
  if (!unmounted.descriptor) return false;
  const Json& header = unmounted.header;
  const auto store =
      Store::Open(std::move(*unmounted.descriptor), GetBytes(header, "store"),
                  GetBytes(header, "workspace"));
  if (!store) return false;
  const auto directory =
      (*store)->TransactionDir(GetBytes(header, "transaction"));
  return !directory && directory.error().code == ENOENT;
}

}  // namespace

Result<int> RunUmount(const Context& context,
                      const UmountArguments& arguments) {
  Context where = context;
  if (arguments.directory) {
    TRY(CheckWay(context.directory, *arguments.directory));
    where.directory = ResolvePath(context.directory, *arguments.directory);
  }
  const auto entry = TRY(FindMount(where));
  struct stat st{};
  if (!entry && ::lstat(where.directory.c_str(), &st) != 0 && errno == ENOENT) {
    return Fail(0, where.directory + " does not exist",
                "`findmnt -t fuse.txfs` lists the mounts");
  }
  if (!entry) {
    return Fail(0, where.directory + " is not in a txfs mount",
                "`findmnt -t fuse.txfs` lists the mounts");
  }
  if (IsDead(*entry)) {
    TRY(ClearDeadMount(*entry));
    return 0;
  }
  // Where this process stands is no reason not to unmount.
  if (::chdir("/") != 0) return Fail(errno, "chdir /");
  auto unmounted = AskDaemon(*entry, arguments.lazy);
  if (!unmounted && unmounted.error().code == EBUSY) {
    return std::unexpected(BusyError(*entry));
  }
  const Frame reply = TRY(std::move(unmounted));
  SayResult("unmounted " + entry->mountpoint +
            (IsGone(reply) ? "; its transaction had no changes and is gone"
                           : "; the transaction stays open"));
  return 0;
}

}  // namespace txfs::cli
