#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>

#include "journal/base/result.h"

namespace txfs::cli {

/// Directory of control sockets of user `uid`: /run/txfs for root,
/// /run/user/UID/txfs where there is one, else /tmp/txfs-UID.
[[nodiscard]] std::string RuntimeDirectory(uid_t uid);

/// Makes RuntimeDirectory of the calling user. Refuses one that is a link, that
/// belongs to somebody else or that others may enter.
Result<std::string> MakeRuntimeDirectory();

/// Control socket of the daemon of user `uid` that serves `mountpoint`.
[[nodiscard]] std::string SocketPath(uid_t uid, const std::string& mountpoint);

/// Tells the socket of `st` from any other that is at its path later.
[[nodiscard]] std::string SocketStamp(const struct stat& st);

/// Removes the socket at `path` if it is still the one that `known` is of.
void RemoveSocket(const std::string& path, const struct stat& known);

/// $XDG_STATE_HOME/txfs, or ~/.local/state/txfs.
[[nodiscard]] std::string StateDirectory();

/// $XDG_CONFIG_HOME/txfs, or ~/.config/txfs.
[[nodiscard]] std::string ConfigDirectory();

/// Makes `path` and its missing parents, 0700.
Status MakeDirectories(const std::string& path);

/// 16 hex digits of the xxh3 of `text`.
[[nodiscard]] std::string HashName(const std::string& text);

}  // namespace txfs::cli
