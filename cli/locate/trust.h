#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// Whose files decide what txfs does (docs/security.md).

/// The name of user `uid`, or "user 1234".
[[nodiscard]] std::string UserName(uid_t uid);

/// Whether that is the caller or the machine's root.
[[nodiscard]] bool IsOwnOrRoots(uid_t uid);

/// Whether the caller alone, or root, can make names in the directory of `st`,
/// or take away those that somebody else made.
[[nodiscard]] bool IsOutOfOthersReach(const struct stat& st);

/// kFailed, EPERM unless the directory `fd` is the caller's. `what` and `path`
/// are for messages: "workspace", "store".
Status CheckIsOwn(int fd, const std::string& what, const std::string& path);

/// Opens the directory `path` of the state directory, making it, 0700, with
/// what is missing above it if `make`. Refuses one that is somebody else's or
/// that others could have put there. ENOENT when there is none.
Result<UniqueFd> OpenStateDirectory(bool make);

/// For root: becomes the user who owns `directory`, or who made the mount that
/// it lies in, for good, and runs this program again with `arguments`, the
/// program's name first. Returns at once where that is the caller. kUsage for
/// other users.
Status ActAsOwner(const std::string& directory,
                  const std::vector<std::string>& arguments);

}  // namespace txfs::cli
