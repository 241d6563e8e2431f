#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/protocol/connection.h"
#include "fs/host/mount_table.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// How long a daemon may take to say that it is there, or to hand out its
/// workspace, milliseconds.
inline constexpr int kReachMs = 10'000;

/// A daemon that can be asked.
struct DaemonAddress {
  std::string mountpoint;
  std::vector<std::string> sockets;  ///< where it may listen
  dev_t device = 0;  ///< of its mount, if that is known: others do not count
};

/// Where the daemon of the mount `entry`, which is_own, may listen.
DaemonAddress AddressOf(const MountEntry& entry);

/// Whether nobody serves the mount `entry` any more, which is_own. A daemon
/// that hangs is there.
[[nodiscard]] bool IsDead(const MountEntry& entry);

/// ETIMEDOUT: the daemon of the mount `entry`, which is_own, hangs. One that is
/// gone is no error.
Status CheckAnswers(const MountEntry& entry);

/// To the daemon at `address`, of which commits that it finished are said on
/// stderr. Its error says so when the mount is dead, or its daemon hangs
/// (ETIMEDOUT): one that does not answer within kReachMs. `timeout_ms` is for
/// what is asked then, as in SocketConnection; a shorter one counts before.
Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address, int timeout_ms = 0);

/// Removes what the daemon of the mount `entry` has left of sockets, of which
/// `stamps` tell that they are its own.
void RemoveSockets(const MountEntry& entry,
                   const std::vector<std::string>& stamps);
/// SocketStamps of the sockets that are where its daemon may listen.
std::vector<std::string> SocketStampsOf(const MountEntry& entry);

/// Whether `fd`, which a daemon handed out, can be the directory `path`: that
/// is an absolute path, and it a directory outside of all txfs mounts. Asks no
/// filesystem that a daemon of txfs serves.
Status CheckHandedOut(const std::string& path, int fd);

}  // namespace txfs::cli
