#pragma once

#include <string>
#include <string_view>

#include "fs/fuse_session.h"
#include "fs/mount_table.h"
#include "journal/base/result.h"
#include "journal/base/unique_fd.h"

namespace txfs {

/// Mounts at `options.mountpoint` and returns the descriptor of the connection:
/// root with mount(2), an ordinary user through fusermount3. The mount table
/// shows type fuse.txfs and `options.source`. Errors are for people.
Result<UniqueFd> MountFuse(const MountOptions& options);

/// The `-o` text for fusermount3; commas and backslashes of the source are
/// escaped as it wants them.
std::string FusermountOptions(const MountOptions& options);

/// Unmounts what is on top at `mountpoint`: EBUSY while in use, unless `lazy`,
/// EINVAL when nothing is mounted there.
Status UnmountPath(const std::string& mountpoint, bool lazy);

/// Whether the daemon behind `mountpoint` is gone. Asks it: do not call this in
/// the daemon about its own mount.
bool IsMountDead(const std::string& mountpoint);

}  // namespace txfs
