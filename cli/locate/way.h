#pragma once

#include <functional>
#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// The way to a path: the directories and symbolic links through which a lookup
/// goes.

/// Calls `visit` with each object on the way to the absolute `path`, opened
/// with O_PATH, before a name in it is looked up; for a symbolic link, with the
/// link itself. Returns the path of the last object, without links. Open that
/// with OpenName, which follows none, or another object than the visited one
/// may be opened. A missing component is not an error: the rest is taken
/// literally.
Result<std::string> WalkTo(const std::string& path,
                           const std::function<Status(int)>& visit);

/// Whether a command may access `path`, relative to the absolute `directory`.
/// EPERM: the path goes through a FUSE mount of another user, or through a txfs
/// mount of root. ETIMEDOUT: it goes through a mount of this user whose daemon
/// hangs. Follows symbolic links, and asks only daemons of this user. A missing
/// component is not an error.
Status CheckWay(const std::string& directory, const std::string& path);

/// As CheckWay, for a working directory or mountpoint. Symbolic links on the
/// way must be this user's or root's. Returns the path as WalkTo does.
Result<std::string> ResolveDirectory(const std::string& directory,
                                     const std::string& path);

}  // namespace txfs::cli
