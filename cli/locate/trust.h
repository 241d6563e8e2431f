#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// Which users' files txfs trusts (docs/security.md).

/// The name of user `uid`, or "user 1234".
[[nodiscard]] std::string UserName(uid_t uid);

/// Whether only the caller or root can create and remove names in the directory
/// of `st`. Its group may write to it if that is the caller's or root's group.
[[nodiscard]] bool IsOutOfOthersReach(const struct stat& st);

/// An error unless the directory `fd` is the caller's. `what` and `path` are
/// for messages: "workspace", "store".
Status CheckIsOwn(int fd, const std::string& what, const std::string& path);

/// Opens the state directory. `make`: makes it (0700) with its missing parents.
/// Refuses one that is another user's or that other users could have put there.
/// ENOENT if there is none.
Result<UniqueFd> OpenStateDirectory(bool make);

/// Whether OpenStateDirectory(true) would succeed. Makes nothing.
Status CheckStateDirectory();

/// For root: permanently becomes the user who owns `directory`, or who made the
/// mount in which it lies, and executes this program again with `arguments`
/// (the program's name first). Returns at once if that user is the caller.
/// kUsage for other callers.
Status ActAsOwner(const std::string& directory,
                  const std::vector<std::string>& arguments);

}  // namespace txfs::cli
