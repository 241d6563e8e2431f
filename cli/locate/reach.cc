#include "cli/locate/reach.h"

#include <fcntl.h>
#include <unistd.h>

#include <ranges>
#include <set>
#include <utility>

#include "cli/locate/trust.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

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
                            " did not return its workspace");
  }
  std::string path = GetBytes(reply.header, "workspace");
  TRY(CheckHandedOut(path, reply.descriptor->get()));
  return MakeReal(std::move(path), std::move(reply.descriptor));
}

Result<RealWorkspace> OpenDirectly(const std::string& path) {
  // By the way that was looked at when the path was resolved, or not at all.
  const auto name = OpenName(path, O_DIRECTORY);
  auto fd = name ? OpenAt(name->get(), ".", O_RDONLY | O_DIRECTORY)
                 : std::unexpected(name.error());
  if (!fd) {
    return Fail(fd.error().code, "workspace " + path,
                "name an existing directory as the workspace");
  }
  return MakeReal(path, std::make_shared<UniqueFd>(std::move(*fd)));
}

}  // namespace

std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace) {
  return Fail(
      0,
      "the store of " + workspace.path + " is missing: it should be at " +
          workspace.record->store,
      "mount its filesystem; if the store is lost, begin a new one: txfs "
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

void SayIfForeign(const RealWorkspace& workspace) {
  static std::set<std::string> said;
  if (!HasForeignStore(workspace.base->get()) ||
      !said.insert(workspace.path).second) {
    return;
  }
  Say("note: ignoring the foreign store " +
      JoinPath(workspace.path, kStoreName) +
      " (`txfs adopt` shows its content)");
}

std::optional<std::string> StorePath(const RealWorkspace& workspace) {
  if (!workspace.record) return std::nullopt;
  const std::string& store = workspace.record->store;
  // One that was given may be lost; our own may not be made yet.
  const bool made = workspace.record->store_id || Store::IsAt(store);
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
