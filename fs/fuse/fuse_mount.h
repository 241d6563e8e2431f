#pragma once

#include <string>
#include <string_view>

#include "fs/fuse/fuse_session.h"
#include "fs/host/mount_table.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The remedy where a mountpoint is another directory than a moment ago.
inline constexpr const char* kSwappedHint =
    "another process changes the directories there: try again when it has "
    "finished, or mount elsewhere";

/// A mount that was just made.
struct FuseMount {
  UniqueFd device;   ///< of the connection
  MountEntry entry;  ///< as the mount table has it
};

/// Mounts at the directory `options.mountpoint`, an absolute path without
/// symbolic links: root with mount(2), at the directory that was opened and
/// checked; an ordinary user through fusermount3. A mount that came to lie
/// anywhere else is undone. The mount table shows type fuse.txfs and
/// `options.source`. Errors are for people.
Result<FuseMount> MountFuse(const MountOptions& options);

/// The `-o` text for fusermount3; commas and backslashes of the source are
/// escaped as it wants them.
std::string FusermountOptions(const MountOptions& options);

/// Unmounts what is on top at `mountpoint`: EBUSY while in use, unless `lazy`,
/// EINVAL when nothing is mounted there, or a filesystem other than `device`
/// (its st_dev; 0: any). Follows no symbolic link.
Status UnmountPath(const std::string& mountpoint, bool lazy, dev_t device = 0);

/// Whether the daemon behind `mountpoint` is gone. Asks it, and takes one that
/// does not answer within `kDeadMs` milliseconds for alive: do not call this in
/// the daemon about its own mount, nor about a mount of another user.
bool IsMountDead(const std::string& mountpoint);
inline constexpr int kDeadMs = 10'000;

}  // namespace txfs
