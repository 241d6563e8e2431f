#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The directories in which daemons of user `uid` may have their control
/// sockets, in order of preference: /run/txfs for root, /run/user/UID/txfs,
/// /tmp/txfs-UID, and `run` in the calling user's state directory. They need
/// not exist.
[[nodiscard]] std::vector<std::string> RuntimeDirectories(uid_t uid);

/// The directories in which the daemon of the calling user listens:
/// - the first of its RuntimeDirectories that can be made, or exists as a
///   private directory of the user;
/// - the one in the state directory, which neither logout nor cleaning removes.
///
/// Skips directories that other users made. Error if there is none.
Result<std::vector<std::string>> MakeRuntimeDirectories();

/// The control socket's name for the daemon of `mountpoint`.
[[nodiscard]] std::string SocketName(const std::string& mountpoint);

/// The possible paths of the socket for user `uid`, in the order of
/// RuntimeDirectories.
[[nodiscard]] std::vector<std::string> SocketPaths(
    uid_t uid, const std::string& mountpoint);

/// Opens the directory of `path` with O_PATH if it is the calling user's; else
/// EPERM. With it, sockets with a path of any length can be bound or connected
/// to (PathBelow).
Result<UniqueFd> OpenOwnParent(const std::string& path);

/// A path of `path`'s last name in the open directory `dir`, short enough for
/// sockets.
[[nodiscard]] std::string PathBelow(int dir, const std::string& path);

/// A text that differs from that of every later socket at the same path.
[[nodiscard]] std::string SocketStamp(const struct stat& st);
/// The stamp of the socket at `path`; "" if there is none.
[[nodiscard]] std::string StampOf(const std::string& path);

/// Removes the socket at `path` if it has the stamp `stamp`.
void RemoveSocket(const std::string& path, const std::string& stamp);

/// Removes the sockets of this user's daemons that are gone.
void RemoveDeadSockets();

/// $HOME; without it, that of the user database, or "/".
[[nodiscard]] std::string HomeDirectory();

/// $XDG_STATE_HOME/txfs, or ~/.local/state/txfs.
[[nodiscard]] std::string StateDirectory();

/// $XDG_CONFIG_HOME/txfs, or ~/.config/txfs.
[[nodiscard]] std::string ConfigDirectory();

/// Whether `uid` is the caller or the machine's root.
[[nodiscard]] bool IsOwnOrRoots(uid_t uid);

/// Makes `path` and its missing parents, 0700. Makes nothing in a directory of
/// a user other than the caller and root.
Status MakeDirectories(const std::string& path);

/// 16 hex digits of the xxh3 of `text`.
[[nodiscard]] std::string HashName(const std::string& text);

}  // namespace txfs::cli
