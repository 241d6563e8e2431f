#include "cli/reach_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <functional>
#include <optional>
#include <set>

#include "cli/errors.h"
#include "cli/json.h"
#include "cli/paths.h"
#include "cli/runtime_dir.h"
#include "cli/text.h"
#include "fs/fuse_mount.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

std::unexpected<Error> DoesNotAnswer(const std::string& mountpoint, pid_t pid) {
  const std::string process = std::to_string(pid);
  return Fail(
      ErrorKind::kFailed, ETIMEDOUT,
      "the daemon of the mount at " + mountpoint + ", process " + process +
          ", does not answer",
      "if it stays so: `kill -KILL " + process +
          "`, then `txfs mount` brings the mount back; nothing that was "
          "acknowledged is lost");
}

/// To the daemon behind one socket; an error, too, when it serves another
/// mount.
Result<std::unique_ptr<SocketConnection>> Greet(const DaemonAddress& address,
                                                const std::string& socket,
                                                int timeout_ms) {
  auto connection = TRY(SocketConnection::Open(socket, timeout_ms));
  const auto reply = connection->Call({{"request", "hello"}});
  if (!reply && reply.error().code == ETIMEDOUT) {
    return DoesNotAnswer(address.mountpoint, connection->pid());
  }
  if (!reply) return std::unexpected(reply.error());
  const uint64_t device = GetUint(reply->header, "device");
  if (address.device != 0 && device != address.device) {
    return Fail(ENOENT, "the daemon at " + socket + " serves another mount");
  }
  return connection;
}

/// To the first of its sockets at which it answers.
Result<std::unique_ptr<SocketConnection>> Greet(const DaemonAddress& address,
                                                int timeout_ms) {
  std::optional<Error> first_error;
  for (const std::string& socket : address.sockets) {
    auto connection = Greet(address, socket, timeout_ms);
    if (connection || connection.error().code == ETIMEDOUT) return connection;
    if (!first_error || first_error->code == ENOENT) {
      first_error = connection.error();
    }
  }
  if (first_error) return std::unexpected(*first_error);
  return Fail(ENOENT, "the daemon of " + address.mountpoint + " has no socket");
}

std::string UserOf(const MountEntry& entry) {
  return entry.owner ? "user " + std::to_string(*entry.owner) : "another user";
}

std::unexpected<Error> OfAnotherUser(const MountEntry& entry) {
  const std::string mountpoint = QuoteShell(entry.mountpoint);
  const std::string hint =
      ::geteuid() == 0
          ? "`txfs --as-owner` acts as the user who made it, `umount -l " +
                mountpoint + "` removes it"
          : "only who mounted it may command it: run as that user";
  return Fail(EPERM,
              entry.mountpoint + " is a mount of " + UserOf(entry) +
                  ", whose daemon txfs does not believe",
              hint);
}

/// The components of `path`.
std::deque<std::string> Components(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end != 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

using Visitor = std::function<Status(const MountEntry&)>;

/// Goes to an absolute path as the kernel does, one name at a time, and shows
/// each txfs mount to a visitor before anything in it is looked up.
class Walk {
 public:
  Walk(const std::vector<MountEntry>& table, Visitor visit)
      : table_(table), visit_(std::move(visit)) {}

  Status To(const std::string& path) {
    std::deque<std::string> parts = Components(path);
    at_ = TRY(OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    for (int links = 0; !parts.empty();) {
      const std::string part = std::move(parts.front());
      parts.pop_front();
      auto next = OpenAt(at_.get(), part, O_PATH | O_NOFOLLOW);
      // It is for the command to say what is missing.
      if (!next) return {};
      TRY(Visit(next->get()));
      const std::string target = TargetOf(next->get());
      if (target.empty()) {
        at_ = std::move(*next);
        continue;
      }
      if (++links > kMaxLinks) return {};
      if (target.starts_with('/')) {
        at_ = TRY(OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
      }
      const auto more = Components(target);
      parts.insert(parts.begin(), more.begin(), more.end());
    }
    return {};
  }

 private:
  static constexpr int kMaxLinks = 40;

  Status Visit(int fd) {
    const int id = MountIdOfDescriptor(fd);
    const MountEntry* entry = FindMountId(table_, id);
    if (entry == nullptr || !entry->is_txfs() || !seen_.insert(id).second) {
      return {};
    }
    return visit_(*entry);
  }

  /// Of a symbolic link; "" of anything else.
  static std::string TargetOf(int fd) {
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(fd, "", target.data(), target.size());
    target.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
    return target;
  }

  const std::vector<MountEntry>& table_;
  const Visitor visit_;
  UniqueFd at_;
  std::set<int> seen_;
};

Status VisitMountsOn(const std::string& path, const Visitor& visit) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  if (std::ranges::none_of(table, &MountEntry::is_txfs)) return {};
  return Walk(table, visit).To(path);
}

}  // namespace

DaemonAddress AddressOf(const MountEntry& entry) {
  DaemonAddress address{.mountpoint = entry.mountpoint,
                        .sockets = SocketPaths(::geteuid(), entry.mountpoint),
                        .device = entry.device()};
  // The caller stands for its owner in a user namespace.
  if (entry.owner && *entry.owner != ::geteuid()) {
    for (std::string& path : SocketPaths(*entry.owner, entry.mountpoint)) {
      address.sockets.push_back(std::move(path));
    }
  }
  return address;
}

bool IsDead(const MountEntry& entry) {
  // Whoever takes the connection is there, also when it hangs.
  const auto daemon = Greet(AddressOf(entry), kReachMs);
  if (daemon || daemon.error().code == ETIMEDOUT) return false;
  return IsMountDead(entry.mountpoint);
}

Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address, int timeout_ms) {
  const int patience =
      timeout_ms == 0 ? kReachMs : std::min(timeout_ms, kReachMs);
  auto connection = Greet(address, patience);
  const bool hangs = !connection && connection.error().code == ETIMEDOUT;
  if (!connection && !hangs) {
    if (IsMountDead(address.mountpoint)) {
      return Fail(0,
                  "the mount at " + address.mountpoint +
                      " is dead: its daemon "
                      "is gone",
                  "`txfs mount` clears it and mounts again, `txfs umount` only "
                  "clears it; nothing that was acknowledged is lost");
    }
    // Of a daemon that has just mounted, the mount answers only when there is a
    // socket.
    connection = Greet(address, patience);
  }
  if (!connection) return connection;
  TRY((*connection)->SetTimeout(timeout_ms));
  (*connection)->OnFinished(SayFinished);
  return connection;
}

std::vector<std::string> SocketStampsOf(const MountEntry& entry) {
  std::vector<std::string> stamps;
  for (const std::string& socket : AddressOf(entry).sockets) {
    std::string stamp = StampOf(socket);
    if (!stamp.empty()) stamps.push_back(std::move(stamp));
  }
  return stamps;
}

void RemoveSockets(const MountEntry& entry,
                   const std::vector<std::string>& stamps) {
  for (const std::string& socket : AddressOf(entry).sockets) {
    for (const std::string& stamp : stamps) RemoveSocket(socket, stamp);
  }
}

Status CheckHandedOut(const std::string& path, int fd) {
  struct statx st{};
  // What the kernel knows is enough, and it knows the type.
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) !=
      0) {
    return Fail(errno, "what a daemon handed out as " + path);
  }
  const auto table = TRY(ReadMountTable());
  const dev_t device = ::makedev(st.stx_dev_major, st.stx_dev_minor);
  const bool in_mount = std::ranges::any_of(table, [&](const auto& entry) {
    return entry.is_txfs() && entry.device() == device;
  });
  const bool is_path = path.starts_with('/') && !path.contains('\0');
  if (is_path && S_ISDIR(st.stx_mode) && !in_mount) return {};
  return Fail(EPROTO,
              "what the daemon handed out as the workspace \"" +
                  EscapeControls(path) + "\" is none",
              "`txfs umount` and mount again");
}

Status CheckWay(const std::string& directory, const std::string& path) {
  const std::string full =
      path.starts_with('/') ? path : JoinPath(directory, path);
  return VisitMountsOn(full, [](const MountEntry& entry) -> Status {
    if (!entry.is_own()) return OfAnotherUser(entry);
    const auto daemon = Greet(AddressOf(entry), kReachMs);
    // Of a dead one nothing is waited for.
    if (daemon || daemon.error().code != ETIMEDOUT) return {};
    return std::unexpected(daemon.error());
  });
}

Result<std::optional<MountEntry>> ForeignMountOn(const std::string& path) {
  std::optional<MountEntry> found;
  const Status walked =
      VisitMountsOn(path, [&](const MountEntry& entry) -> Status {
        if (entry.is_own()) return {};
        found = entry;
        // Nothing in it is looked up.
        return Fail(EPERM, entry.mountpoint);
      });
  if (!walked && !found) return std::unexpected(walked.error());
  return found;
}

}  // namespace txfs::cli
