#include "cli/reach.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <ranges>
#include <set>
#include <utility>

#include "cli/errors.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/runtime_dir.h"
#include "cli/text.h"
#include "cli/trust.h"
#include "fs/fuse_mount.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

/// How long a daemon may take to hand out its workspace.
constexpr int kReachMs = 10'000;

/// The user that made the mount, as the kernel has it.
uid_t OwnerOf(const MountEntry& entry) {
  constexpr std::string_view kKey = "user_id=";
  const std::string_view options = entry.options;
  const size_t at = options.find(kKey);
  uid_t uid = 0;
  if (at != std::string_view::npos) {
    const char* start = options.data() + at + kKey.size();
    std::from_chars(start, options.data() + options.size(), uid);
  }
  return uid;
}

Result<RealWorkspace> MakeReal(std::string path,
                               std::shared_ptr<UniqueFd> base) {
  TRY(CheckIsOwn(base->get(), "workspace", path));
  auto record = TRY(FindRecord(base->get(), path));
  return RealWorkspace{.path = std::move(path),
                       .base = std::move(base),
                       .record = std::move(record)};
}

Result<RealWorkspace> AskForWorkspace(const DaemonAddress& address) {
  const auto daemon = TRY(ConnectDaemon(address, kReachMs));
  Frame reply = TRY(daemon->Call({{"request", "workspace"}}));
  if (!reply.descriptor) {
    return Fail(EPROTO, "the daemon at " + address.mountpoint +
                            " did not hand out its workspace");
  }
  return MakeReal(GetBytes(reply.header, "workspace"),
                  std::move(reply.descriptor));
}

Result<RealWorkspace> OpenDirectly(const std::string& path) {
  auto fd = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!fd) {
    return Fail(fd.error().code, "workspace " + path,
                "name an existing directory as the workspace");
  }
  return MakeReal(path, std::make_shared<UniqueFd>(std::move(*fd)));
}

}  // namespace

DaemonAddress AddressOf(const MountEntry& entry) {
  return {.mountpoint = entry.mountpoint,
          .socket = SocketPath(OwnerOf(entry), entry.mountpoint)};
}

bool IsDead(const MountEntry& entry) {
  // Whoever takes the connection is there. To ask the mount could take for
  // ever.
  return !SocketConnection::Open(AddressOf(entry).socket, kReachMs) &&
         IsMountDead(entry.mountpoint);
}

Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address, int timeout_ms) {
  auto connection = SocketConnection::Open(address.socket, timeout_ms);
  if (!connection && IsMountDead(address.mountpoint)) {
    return Fail(0,
                "the mount at " + address.mountpoint +
                    " is dead: its daemon "
                    "is gone",
                "`txfs mount` clears it and mounts again, `txfs umount` only "
                "clears it; nothing that was acknowledged is lost");
  }
  // Of a daemon that has just mounted, the mount answers only when there is a
  // socket.
  if (!connection) {
    connection = SocketConnection::Open(address.socket, timeout_ms);
  }
  if (connection) (*connection)->OnFinished(SayFinished);
  return connection;
}

std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace) {
  return Fail(0,
              "the store of " + workspace.path + " should be at " +
                  workspace.record->store + ", and is not",
              "mount what it is on; if it is gone for good, begin afresh: txfs "
              "mount --store DIR " +
                  QuoteShell(workspace.path));
}

Result<RealWorkspace> ReachWorkspace(const std::string& path) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  const auto over = FindTxfsMount(table, path);
  if (!over || over->mountpoint != path) return OpenDirectly(path);
  std::optional<Error> first_error;
  // The one on top first; any other that serves the workspace will do.
  for (const MountEntry& entry : table | std::views::reverse) {
    const bool candidate = entry.mountpoint == path || entry.source == path;
    if (entry.type != "fuse.txfs" || !candidate) continue;
    auto workspace = AskForWorkspace(AddressOf(entry));
    if (workspace && workspace->path == path) return workspace;
    if (!workspace && !first_error) first_error = workspace.error();
  }
  if (first_error) return std::unexpected(*std::move(first_error));
  // The mount of another workspace: what it shows is meant.
  return OpenDirectly(path);
}

Result<RealWorkspace> ReachWorkspaceOf(const MountEntry& entry) {
  auto workspace = AskForWorkspace(AddressOf(entry));
  // A dead mount does not hide the workspace, unless it lies over it.
  const bool hidden = entry.source == entry.mountpoint;
  if (workspace || !entry.source.starts_with('/')) return workspace;
  auto reached = ReachWorkspace(entry.source);
  return reached || !hidden ? std::move(reached) : std::move(workspace);
}

void SayIfForeign(const RealWorkspace& workspace) {
  static std::set<std::string> said;
  if (!HasForeignStore(workspace.base->get()) ||
      !said.insert(workspace.path).second) {
    return;
  }
  Say("note: ignoring " + JoinPath(workspace.path, kStoreName) +
      ", a store that was not made here by this user (`txfs adopt` shows what "
      "is in it)");
}

std::optional<std::string> StorePath(const RealWorkspace& workspace) {
  if (!workspace.record) return std::nullopt;
  const std::string& store = workspace.record->store;
  // One that was given may be lost; our own may not be made yet.
  const bool made = workspace.record->store_id ||
                    ::access((store + "/FORMAT").c_str(), F_OK) == 0;
  return made ? std::optional(store) : std::nullopt;
}

Status MakeStore(const RealWorkspace& workspace) {
  UniqueFd fd = TRY(OpenRecordedStore(*workspace.record));
  TRY(Store::Open(std::move(fd), workspace.record->store, workspace.path));
  return {};
}

Result<std::unique_ptr<Store>> OpenStore(const RealWorkspace& workspace) {
  const auto path = StorePath(workspace);
  if (!path) return Fail(ENOENT, "the store of " + workspace.path);
  auto fd = OpenRecordedStore(*workspace.record);
  if (!fd && fd.error().code == ENOENT) return StoreIsLost(workspace);
  UniqueFd dir = TRY(std::move(fd));
  return Store::Open(std::move(dir), *path, workspace.path);
}

}  // namespace txfs::cli
