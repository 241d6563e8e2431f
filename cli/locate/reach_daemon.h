#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/protocol/connection.h"
#include "fs/host/mount_table.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Time for a daemon to answer "hello", or to hand out its workspace,
/// milliseconds.
inline constexpr int kReachMs = 10'000;

/// Where to reach a daemon.
struct DaemonAddress {
  std::string mountpoint;
  std::vector<std::string> sockets;  ///< where it may listen
  dev_t device = 0;  ///< of its mount, which must match; 0: unknown
};

/// The address of the daemon of the mount `entry`; requires is_own.
DaemonAddress AddressOf(const MountEntry& entry);

/// Whether the daemon of the mount `entry` is gone; requires is_own. A daemon
/// that hangs is not gone.
[[nodiscard]] bool IsDead(const MountEntry& entry);

/// ETIMEDOUT if the daemon of the mount `entry` hangs; requires is_own. A
/// daemon that is gone is not an error.
Status CheckAnswers(const MountEntry& entry);

/// Connects to the daemon at `address`. Reports commits that the daemon
/// finishes on stderr. The error says whether the mount is dead or its daemon
/// hangs (ETIMEDOUT): it did not answer within kReachMs, or `timeout_ms` if
/// that is shorter. `timeout_ms` also applies to later requests, as in
/// SocketConnection.
Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address, int timeout_ms = 0);

/// Removes the sockets that the daemon of the mount `entry` left, if they have
/// one of `stamps`.
void RemoveSockets(const MountEntry& entry,
                   const std::vector<std::string>& stamps);
/// Stamps of the sockets at which the daemon of `entry` may listen.
std::vector<std::string> SocketStampsOf(const MountEntry& entry);

/// Checks that `fd`, which a daemon handed out, can be the directory `path`:
/// the path is absolute, and the directory is outside of all txfs mounts.
/// Accesses no filesystem that a daemon of txfs serves.
Status CheckHandedOut(const std::string& path, int fd);

}  // namespace txfs::cli
