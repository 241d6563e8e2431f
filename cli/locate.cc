#include "cli/locate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <ranges>

#include "cli/json.h"
#include "cli/paths.h"
#include "cli/registry.h"
#include "cli/runtime_dir.h"
#include "fs/fuse_mount.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

bool HasStore(const std::string& directory) {
  return ::access((directory + "/FORMAT").c_str(), F_OK) == 0;
}

std::string StoreOf(const Place& place) {
  return place.store.value_or(JoinPath(place.workspace, ".txfs"));
}

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

Place PlaceOfMount(const MountEntry& entry) {
  const bool is_path = entry.source.starts_with('/');
  return {.workspace = is_path ? entry.source : entry.mountpoint,
          .store = std::nullopt,
          .daemon = AddressOf(entry),
          .root = entry.mountpoint};
}

Result<Place> PlaceOfStore(const std::string& store) {
  const Result<std::string> workspace =
      ReadWholeFile(AT_FDCWD, store + "/workspace", 1 << 16);
  if (!HasStore(store) || !workspace) {
    return Fail(0, store + " is not a txfs store",
                "`txfs mount --store DIR WORKSPACE` makes one");
  }
  return Place{.workspace = *workspace,
               .store = store,
               .daemon = std::nullopt,
               .root = *workspace};
}

/// The address in the record of a transaction, if somebody listens there.
std::optional<DaemonAddress> RecordedDaemon(Store& store,
                                            const std::string& id) {
  const Result<std::string> text = store.ReadDaemonRecord(id);
  if (!text) return std::nullopt;
  const Json record = Json::parse(*text, nullptr, false);
  DaemonAddress address{.mountpoint = GetBytes(record, "mountpoint"),
                        .socket = GetBytes(record, "socket")};
  if (!SocketConnection::Open(address.socket)) return std::nullopt;
  return address;
}

Result<Place> WithDaemon(Place place) {
  place.daemon = TRY(FindDaemon(place));
  return place;
}

}  // namespace

DaemonAddress AddressOf(const MountEntry& entry) {
  return {.mountpoint = entry.mountpoint,
          .socket = SocketPath(OwnerOf(entry), entry.mountpoint)};
}

std::optional<Place> FindWorkspace(const std::string& directory) {
  std::string at = directory;
  for (;;) {
    if (HasStore(JoinPath(at, ".txfs"))) {
      return Place{.workspace = at,
                   .store = std::nullopt,
                   .daemon = std::nullopt,
                   .root = at};
    }
    if (const auto store = RegisteredStore(at); store && HasStore(*store)) {
      return Place{
          .workspace = at, .store = store, .daemon = std::nullopt, .root = at};
    }
    if (at == "/" || at.empty()) return std::nullopt;
    at.resize(std::max<size_t>(at.rfind('/'), 1));
  }
}

Result<std::unique_ptr<Store>> OpenStore(const Place& place) {
  const std::string path = StoreOf(place);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return Fail(errno, "cannot open the store " + path);
  return Store::Open(std::move(fd), path, place.workspace);
}

Result<std::optional<DaemonAddress>> FindDaemon(const Place& place) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  for (const MountEntry& entry : table | std::views::reverse) {
    if (entry.type == "fuse.txfs" && entry.source == place.workspace) {
      return std::optional(AddressOf(entry));
    }
  }
  if (!HasStore(StoreOf(place))) return std::optional<DaemonAddress>();
  const std::unique_ptr<Store> store = TRY(OpenStore(place));
  for (const std::string& id : TRY(store->OpenIds())) {
    if (auto address = RecordedDaemon(*store, id)) return address;
  }
  return std::optional<DaemonAddress>();
}

Result<Place> Locate(const Context& context) {
  if (context.store) {
    Place place = TRY(PlaceOfStore(*context.store));
    return WithDaemon(std::move(place));
  }
  if (const auto entry = FindTxfsMount(context.directory)) {
    return PlaceOfMount(*entry);
  }
  if (const auto place = FindWorkspace(context.directory)) {
    return WithDaemon(*place);
  }
  struct stat st{};
  if (::lstat(context.directory.c_str(), &st) != 0 && errno == ENOENT) {
    return Fail(0, context.directory + " does not exist",
                "name a directory of a workspace with -C");
  }
  return Fail(0, context.directory + " is not inside a txfs workspace",
              "`txfs mount WORKSPACE` makes a directory one");
}

Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address) {
  auto connection = SocketConnection::Open(address.socket);
  if (connection || !IsMountDead(address.mountpoint)) return connection;
  return Fail(0,
              "the mount at " + address.mountpoint +
                  " is dead: its daemon "
                  "is gone",
              "`txfs mount` clears it and mounts again, `txfs umount` only "
              "clears it; nothing that was acknowledged is lost");
}

Result<Client> Connect(const Place& place) {
  if (place.daemon) return Client(TRY(ConnectDaemon(*place.daemon)));
  WorkspaceOptions options;
  options.path = place.workspace;
  options.store = place.store;
  options.begin = false;
  return Client(
      std::make_unique<LocalConnection>(TRY(Workspace::Open(options))));
}

Result<Client> Connect(const Context& context) {
  const Place place = TRY(Locate(context));
  return Connect(place);
}

Result<Client> ConnectArchive(const Context& context) {
  const Place place = TRY(Locate(context));
  if (place.daemon) return Client(TRY(ConnectDaemon(*place.daemon)));
  return Client(std::make_unique<ArchiveConnection>(
      TRY(Archive::Open(place.workspace, place.store))));
}

Result<std::vector<std::string>> RelativePaths(
    const Context& context, const Place& place,
    const std::vector<std::string>& paths) {
  std::vector<std::string> relative;
  for (const std::string& path : paths) {
    const std::string full = ResolveParent(context.directory, path);
    auto below = RelativeTo(full, place.root);
    if (!below) below = RelativeTo(full, place.workspace);
    if (!below && place.daemon) {
      below = RelativeTo(full, place.daemon->mountpoint);
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
