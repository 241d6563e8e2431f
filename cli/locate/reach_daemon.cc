#include "cli/locate/reach_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/fuse/fuse_mount.h"

namespace txfs::cli {
namespace {

std::unexpected<Error> DoesNotAnswer(const std::string& mountpoint, pid_t pid) {
  const std::string process = std::to_string(pid);
  return Fail(
      ErrorKind::kFailed, ETIMEDOUT,
      "the daemon of the mount at " + mountpoint + ", process " + process +
          ", does not answer",
      "if this persists, run `kill -KILL " + process +
          "`, then `txfs mount`, which brings the mount back; acknowledged "
          "changes are not lost");
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

Status CheckAnswers(const MountEntry& entry) {
  const auto daemon = Greet(AddressOf(entry), kReachMs);
  // Of a dead one nothing is waited for.
  if (daemon || daemon.error().code != ETIMEDOUT) return {};
  return std::unexpected(daemon.error());
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
                  "clears it; acknowledged changes are not lost");
    }
    // Of a daemon that has just mounted, the mount answers only when there is a
    // socket.
    connection = Greet(address, patience);
  }
  if (!connection) {
    Error& error = connection.error();
    if (error.hint.empty()) {
      error.hint =
          "the mount is served, but its control socket is missing: run "
          "`txfs umount`, then `txfs mount`";
    }
    return connection;
  }
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
    return Fail(errno, "the workspace that a daemon returned, " + path);
  }
  const auto table = TRY(ReadMountTable());
  const dev_t device = ::makedev(st.stx_dev_major, st.stx_dev_minor);
  const bool in_mount = std::ranges::any_of(table, [&](const auto& entry) {
    return entry.is_txfs() && entry.device() == device;
  });
  const bool is_path = path.starts_with('/') && !path.contains('\0');
  if (is_path && S_ISDIR(st.stx_mode) && !in_mount) return {};
  return Fail(EPROTO,
              "the daemon returned \"" + EscapeControls(path) +
                  "\" as the workspace, which it is not",
              "run `txfs umount`, then `txfs mount`");
}

}  // namespace txfs::cli
