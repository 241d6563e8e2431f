#include "cli/locate/locate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "cli/locate/mappings.h"
#include "cli/locate/trust.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// By a store that was given: it names its workspace, whose record has to name
/// it.
Result<RealWorkspace> ReachByStore(const std::string& store) {
  const UniqueFd dir = TRY(Store::OpenDirectory(AT_FDCWD, store, store));
  TRY(CheckIsOwn(dir.get(), "store", store));
  const Result<std::string> path =
      ReadWholeFile(dir.get(), "workspace", PATH_MAX);
  if (!path || !path->starts_with('/')) {
    return Fail(0, store + " is not a txfs store",
                "`txfs mount --store DIR WORKSPACE` makes one");
  }
  RealWorkspace workspace = TRY(ReachWorkspace(ResolvePath("/", *path)));
  const DirectoryId id = TRY(IdentifyDirectory(dir.get()));
  if (workspace.record) {
    const UniqueFd its = TRY(OpenRecordedStore(*workspace.record));
    if (TRY(IdentifyDirectory(its.get())).IsSame(id)) return workspace;
  }
  return Fail(
      0, "this user did not make the store " + store + " on this machine",
      "`txfs adopt --from " + QuoteShell(store) + "` shows its content");
}

Place PlaceOfMount(const MountEntry& entry) {
  const bool is_path = entry.source.starts_with('/');
  return {.workspace = is_path ? entry.source : entry.mountpoint,
          .root = entry.mountpoint,
          .daemon = DaemonState::kRunning,
          .address = AddressOf(entry),
          .real = {},
          .transaction = {}};
}

std::unexpected<Error> NotInAWorkspace(const std::string& directory) {
  struct stat st{};
  if (::lstat(directory.c_str(), &st) != 0 && errno == ENOENT) {
    return Fail(0, directory + " does not exist",
                "name a directory of a workspace with -C");
  }
  const auto fd = OpenAt(AT_FDCWD, directory, O_PATH | O_DIRECTORY);
  const bool is_roots_question = ::geteuid() == 0 && fd;
  if (is_roots_question) {
    const Status own = CheckIsOwn(fd->get(), "directory", directory);
    if (!own) return std::unexpected(own.error());
  }
  return Fail(0, directory + " is not inside a txfs workspace",
              "`txfs mount WORKSPACE` makes a directory one");
}

}  // namespace

Result<std::optional<std::string>> FindWorkspace(const std::string& directory) {
  std::string at = directory;
  for (;;) {
    const auto fd = OpenAt(AT_FDCWD, at, O_RDONLY | O_DIRECTORY);
    struct stat st{};
    const bool known = fd && ::fstat(fd->get(), &st) == 0;
    const bool named = at == directory;
    const bool own = known && st.st_uid == ::geteuid();
    if (own && (named || IsOutOfOthersReach(st))) {
      const auto record = TRY(FindRecord(fd->get(), at));
      if (record) return std::optional(at);
      auto base = TRY(OpenAt(fd->get(), ".", O_PATH | O_DIRECTORY));
      SayIfForeign(
          {.path = at, .base = std::make_shared<UniqueFd>(std::move(base))});
    }
    // Whoever can write here could have put there what lies below.
    const bool ends = known && !(own || st.st_uid == 0);
    if (at == "/" || at.empty() || ends ||
        (known && !IsOutOfOthersReach(st) && !named)) {
      return std::optional<std::string>();
    }
    at.resize(std::max<size_t>(at.rfind('/'), 1));
  }
}

Result<WorkspacePlace> LocateWorkspace(const Context& context) {
  if (context.store) {
    RealWorkspace real = TRY(ReachByStore(*context.store));
    std::string root = real.path;
    return WorkspacePlace{.real = std::move(real), .root = std::move(root)};
  }
  if (const auto entry = FindTxfsMount(context.directory)) {
    RealWorkspace real = TRY(ReachWorkspaceOf(*entry));
    SayIfForeign(real);
    return WorkspacePlace{.real = std::move(real), .root = entry->mountpoint};
  }
  const auto path = TRY(FindWorkspace(context.directory));
  if (!path) return NotInAWorkspace(context.directory);
  RealWorkspace real = TRY(ReachWorkspace(*path));
  SayIfForeign(real);
  return WorkspacePlace{.real = std::move(real), .root = *path};
}

Result<Place> Locate(const Context& context) {
  if (!context.transaction && !context.store) {
    const auto entry = FindTxfsMount(context.directory);
    if (entry) return PlaceOfMount(*entry);
  }
  WorkspacePlace found = TRY(LocateWorkspace(context));
  const std::unique_ptr<Archive> archive = TRY(OpenArchive(found.real));
  // It may be the end of the transaction that is asked for.
  SayFinished(TRY(RollForward(*archive, {}, RefreshSiblings)));
  const std::vector<ServedTransaction> open = TRY(ListServed(archive->store()));
  const ServedTransaction chosen =
      TRY(ChooseTransaction(open, context.transaction, found.real.path));
  return Place{.workspace = found.real.path,
               .root = std::move(found.root),
               .daemon = chosen.daemon,
               .address = chosen.address,
               .real = std::move(found.real),
               .transaction = chosen.summary.name};
}

Result<WorkspaceOptions> OptionsOf(const Place& place) {
  if (!place.real.record) {
    return Fail(0, "workspace " + place.real.path + " has no store",
                "`txfs mount` makes one");
  }
  UniqueFd store = TRY(OpenRecordedStore(*place.real.record));
  WorkspaceOptions options;
  options.path = place.real.path;
  options.base = place.real.base;
  options.store = place.real.record->store;
  options.store_directory = std::make_shared<UniqueFd>(std::move(store));
  options.name = place.transaction;
  options.begin = false;
  return options;
}

namespace {

Result<Client> ConnectWith(const Place& place,
                           std::shared_ptr<const policy::Policy> policy) {
  if (place.daemon == DaemonState::kRunning) {
    return Client(TRY(ConnectDaemon(place.address)));
  }
  WorkspaceOptions options = TRY(OptionsOf(place));
  options.filesystem.policy = std::move(policy);
  std::unique_ptr<Workspace> workspace = TRY(Workspace::Open(options));
  auto connection = std::make_unique<LocalConnection>(
      std::move(workspace), options.name.empty(), RefreshSiblings);
  connection->OnFinished(SayFinished);
  return Client(std::move(connection));
}

}  // namespace

Result<Client> Connect(const Place& place) {
  return ConnectWith(place, nullptr);
}

Result<Client> Connect(const Context& context) {
  const Place place = TRY(Locate(context));
  return Connect(place);
}

Result<Client> ConnectFlushed(const Place& place, WhatWaits what_waits,
                              std::shared_ptr<const policy::Policy> policy) {
  if (place.daemon != DaemonState::kRunning) {
    return ConnectWith(place, std::move(policy));
  }
  // First, for it finds out whether the daemon hangs.
  Client client = TRY(Connect(place));
  const MappingsFlush flush =
      TRY(MappingsFlush::Start(place.address.mountpoint));
  constexpr int kPatienceMs = 200;
  while (!flush.Await(kPatienceMs)) {
    if (TRY(client.Pending()).empty()) continue;
    if (what_waits == WhatWaits::kGoOnWaiting) {
      Say("note: an operation waits for an answer (`txfs pending`): writes "
          "through a mapping of its file may be missing");
      break;
    }
    TRY(client.DenyWaiting());
  }
  return client;
}

void LookUpMoved(const Place& place, const Client& client) {
  if (place.daemon != DaemonState::kRunning) return;
  // The kernel only tries the locks of what it moves, and others may have them.
  constexpr int kTries = 3;
  for (const std::string& path : client.moved()) {
    const std::string full = JoinPath(place.address.mountpoint, path);
    struct stat st{};
    for (int i = 0; i < kTries; ++i) {
      if (::lstat(full.c_str(), &st) == 0 || errno != ESTALE) break;
    }
  }
}

Result<std::unique_ptr<Archive>> OpenArchive(const RealWorkspace& workspace) {
  std::unique_ptr<Store> store = TRY(OpenStore(workspace));
  UniqueFd base =
      TRY(OpenAt(workspace.base->get(), ".", O_RDONLY | O_DIRECTORY));
  return Archive::Open(workspace.path, std::move(base), std::move(store));
}

Result<std::optional<std::string>> WantedTransaction(
    const Context& context, const std::optional<std::string>& argument) {
  if (argument && context.transaction) {
    return Fail(ErrorKind::kUsage, 0, "the transaction is given twice",
                "omit -t, or the argument");
  }
  std::optional<std::string> wanted = argument ? argument : context.transaction;
  if (!wanted || !wanted->empty()) return wanted;
  return Fail(ErrorKind::kUsage, 0,
              "the name or id of the transaction is empty",
              "`txfs list` shows the transactions");
}

Result<Client> ConnectArchive(const Context& context) {
  const WorkspacePlace place = TRY(LocateWorkspace(context));
  std::unique_ptr<Archive> archive = TRY(OpenArchive(place.real));
  std::optional<DaemonAddress> daemon;
  for (const ServedTransaction& open : TRY(ListServed(archive->store()))) {
    if (open.daemon != DaemonState::kRunning) continue;
    if (!daemon || open.address.mountpoint == place.root) daemon = open.address;
  }
  if (daemon) return Client(TRY(ConnectDaemon(*daemon)));
  auto connection =
      std::make_unique<ArchiveConnection>(std::move(archive), RefreshSiblings);
  connection->OnFinished(SayFinished);
  return Client(std::move(connection));
}

Result<std::vector<std::string>> RelativePaths(
    const Context& context, const Place& place,
    const std::vector<std::string>& paths) {
  std::vector<std::string> relative;
  for (const std::string& path : paths) {
    if (path.empty()) {
      return Fail(ErrorKind::kUsage, 0, "a path is empty",
                  "use \".\" for the working directory");
    }
    TRY(CheckWay(context.directory, path));
    const std::string full = ResolveParent(context.directory, path);
    auto below = RelativeTo(full, place.root);
    if (!below) below = RelativeTo(full, place.workspace);
    if (!below && place.daemon == DaemonState::kRunning) {
      below = RelativeTo(full, place.address.mountpoint);
    }
    if (!below) {
      return Fail(ErrorKind::kUsage, 0,
                  full + " is outside the workspace " + place.workspace);
    }
    relative.push_back(*below);
  }
  return relative;
}

}  // namespace txfs::cli
