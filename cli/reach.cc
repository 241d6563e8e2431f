#include "cli/reach.h"

#include <fcntl.h>
#include <unistd.h>

#include <ranges>
#include <utility>

#include "cli/errors.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/registry.h"
#include "cli/runtime_dir.h"
#include "cli/text.h"
#include "fs/fuse_mount.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

constexpr const char* kFormat = ".txfs/FORMAT";
Result<RealWorkspace> AskForWorkspace(const DaemonAddress& address) {
  const auto daemon = TRY(ConnectDaemon(address, kReachMs));
  Frame reply = TRY(daemon->Call({{"request", "workspace"}}));
  if (!reply.descriptor) {
    return Fail(EPROTO, "the daemon at " + address.mountpoint +
                            " did not hand out its workspace");
  }
  RealWorkspace workspace{.path = GetBytes(reply.header, "workspace"),
                          .store = GetBytes(reply.header, "store"),
                          .lost_store = {},
                          .base = std::move(reply.descriptor)};
  TRY(CheckHandedOut(workspace.path, workspace.base->get()));
  if (*workspace.store == JoinPath(workspace.path, kStoreName)) {
    workspace.store.reset();
  }
  return workspace;
}

Result<RealWorkspace> OpenDirectly(const std::string& path) {
  auto fd = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!fd) {
    return Fail(fd.error().code, "workspace " + path,
                "name an existing directory as the workspace");
  }
  RealWorkspace workspace{.path = path,
                          .store = StoreElsewhere(path),
                          .lost_store = {},
                          .base = std::make_shared<UniqueFd>(std::move(*fd))};
  if (workspace.store && !IsStore(*workspace.store)) {
    std::swap(workspace.store, workspace.lost_store);
  }
  return workspace;
}

}  // namespace

bool IsStore(const std::string& directory) {
  if (::access(directory.c_str(), F_OK) != 0) return false;
  // Also when it is somebody else's, which opening it tells.
  return ::access((directory + "/FORMAT").c_str(), F_OK) == 0 ||
         errno == EACCES;
}

std::optional<std::string> StoreElsewhere(const std::string& path) {
  if (IsStore(JoinPath(path, kStoreName))) return std::nullopt;
  return RegisteredStore(path);
}

std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace) {
  return Fail(0,
              "the store of " + workspace.path + " should be at " +
                  *workspace.lost_store + ", and is not",
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
    if (!entry.is_own() || !candidate) continue;
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

std::optional<std::string> StorePath(const RealWorkspace& workspace) {
  if (workspace.store) return workspace.store;
  if (::faccessat(workspace.base->get(), kFormat, F_OK, 0) != 0) {
    return std::nullopt;
  }
  return JoinPath(workspace.path, kStoreName);
}

Result<std::unique_ptr<Store>> OpenStore(const RealWorkspace& workspace) {
  if (workspace.lost_store) return StoreIsLost(workspace);
  const std::string path =
      workspace.store.value_or(JoinPath(workspace.path, kStoreName));
  // A directory .txfs may also have rules, or what undo needs, and no store.
  if (!workspace.store &&
      ::faccessat(workspace.base->get(), kFormat, F_OK, 0) != 0 &&
      errno == ENOENT) {
    return Fail(ENOENT, "store " + path);
  }
  const int dir = workspace.store ? AT_FDCWD : workspace.base->get();
  const std::string name = workspace.store.value_or(kStoreName);
  UniqueFd fd = TRY(Store::OpenDirectory(dir, name, path));
  return Store::Open(std::move(fd), path, workspace.path);
}

}  // namespace txfs::cli
