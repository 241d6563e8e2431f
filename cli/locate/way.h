#pragma once

#include <functional>
#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// What lies on the way to a path: the directories and symbolic links that
/// lookups go through, before what they lead to.

/// Shows each object on the way to the absolute `path`, opened for its name
/// alone (O_PATH), before anything in it is looked up; of a symbolic link that
/// is the link. Returns the path of what it came to, without links; whoever
/// opens that is to follow none (OpenName), or what was visited may not be what
/// is opened. What is not there is no error: the rest is taken literally.
Result<std::string> WalkTo(const std::string& path,
                           const std::function<Status(int)>& visit);

/// Whether a command may look at `path`, relative to the absolute `directory`:
/// what lies in a FUSE mount that another user made is refused (root's ones are
/// not, but for txfs' own), and what lies in one of this user's whose daemon
/// hangs (ETIMEDOUT). Follows symbolic links, and asks no daemon but this
/// user's own. What is not there is no error.
Status CheckWay(const std::string& directory, const std::string& path);

/// The same of a directory to work in or to mount at. No symbolic link on the
/// way there is another user's, but root's. Returns the path as WalkTo does.
Result<std::string> ResolveDirectory(const std::string& directory,
                                     const std::string& path);

}  // namespace txfs::cli
