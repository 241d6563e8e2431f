#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The directories in which daemons of user `uid` may have their control
/// sockets, the first choice first: /run/txfs for root, /run/user/UID/txfs,
/// /tmp/txfs-UID, and `run` in the calling user's state directory. Whether they
/// are there is not looked at.
[[nodiscard]] std::vector<std::string> RuntimeDirectories(uid_t uid);

/// Where the daemon of the calling user is to listen: the first of its
/// RuntimeDirectories that can be made or is there as a directory of its own
/// that nobody else may enter, and the one in the state directory, which no
/// logout and no cleaning removes. What others made is passed over. Errors:
/// there is none.
Result<std::vector<std::string>> MakeRuntimeDirectories();

/// Name of the control socket of the daemon that serves `mountpoint`.
[[nodiscard]] std::string SocketName(const std::string& mountpoint);

/// The paths that it may have for user `uid`, in the order of
/// RuntimeDirectories.
[[nodiscard]] std::vector<std::string> SocketPaths(
    uid_t uid, const std::string& mountpoint);

/// Opens the directory of `path` for its name alone, if it is the calling
/// user's: EPERM else. A path of any length can be bound or connected to by
/// way of it (PathBelow).
Result<UniqueFd> OpenOwnParent(const std::string& path);

/// The name of `path` in the open directory `dir`, short enough for sockets.
[[nodiscard]] std::string PathBelow(int dir, const std::string& path);

/// Tells the socket of `st` from any other that is at its path later.
[[nodiscard]] std::string SocketStamp(const struct stat& st);
/// The same of the socket at `path`; "" where there is none.
[[nodiscard]] std::string StampOf(const std::string& path);

/// Removes the socket at `path` if it is still the one that `stamp` is of.
void RemoveSocket(const std::string& path, const std::string& stamp);

/// $XDG_STATE_HOME/txfs, or ~/.local/state/txfs.
[[nodiscard]] std::string StateDirectory();

/// $XDG_CONFIG_HOME/txfs, or ~/.config/txfs.
[[nodiscard]] std::string ConfigDirectory();

/// Makes `path` and its missing parents, 0700.
Status MakeDirectories(const std::string& path);

/// 16 hex digits of the xxh3 of `text`.
[[nodiscard]] std::string HashName(const std::string& text);

}  // namespace txfs::cli
