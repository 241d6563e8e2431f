#pragma once

#include <functional>
#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// What lies on the way to a path: the directories and symbolic links that
/// lookups go through, before what they lead to.

/// Shows each object on the way to the absolute `path`, opened for its name
/// alone (O_PATH), before anything in it is looked up; of a symbolic link that
/// is the link. Returns the path of the last object, without links; open it
/// with OpenName, which follows none, or another object than the visited one
/// may be opened. A missing component is no error: the rest is taken literally.
Result<std::string> WalkTo(const std::string& path,
                           const std::function<Status(int)>& visit);

/// Whether a command may look at `path`, relative to the absolute `directory`.
/// EPERM: the path goes through a FUSE mount of another user, or through a txfs
/// mount of root. ETIMEDOUT: it goes through a mount of this user whose daemon
/// hangs. Follows symbolic links, and asks no daemon but this user's own. A
/// missing component is no error.
Status CheckWay(const std::string& directory, const std::string& path);

/// The same of a directory to work in or to mount at. Symbolic links on the way
/// must be this user's or root's. Returns the path as WalkTo does.
Result<std::string> ResolveDirectory(const std::string& directory,
                                     const std::string& path);

}  // namespace txfs::cli
