#pragma once

#include <string>
#include <string_view>

#include "fs/fuse/fuse_session.h"
#include "fs/host/mount_table.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The remedy for a mountpoint that has been replaced by another directory.
inline constexpr const char* kSwappedHint =
    "another process changes the directories there: try again when it has "
    "finished, or mount elsewhere";

/// A new mount.
struct FuseMount {
  UniqueFd device;   ///< of the connection
  MountEntry entry;  ///< its line in the mount table
};

/// Mounts at the directory `options.mountpoint`, an absolute path without
/// symbolic links. Root mounts with mount(2) on the opened and checked
/// directory, an ordinary user through fusermount3. A mount that is at another
/// place afterwards is undone. The mount table has type fuse.txfs and
/// `options.source`. Errors are for users.
Result<FuseMount> MountFuse(const MountOptions& options);

/// Gives the mount `entry` the flags that `options` name, in the place of its
/// own: later options count, other flags stay. Only for root.
Status RemountFuse(const MountEntry& entry,
                   const std::vector<std::string>& options);

/// The `-o` text for fusermount3. Escapes commas and backslashes in the source.
std::string FusermountOptions(const MountOptions& options);

/// Unmounts the topmost mount at `mountpoint`. EBUSY while it is in use, unless
/// `lazy`; EINVAL if nothing is mounted there. With `device`, an st_dev, only
/// that filesystem: done if it is not mounted there any more; EINVAL while
/// another is mounted over it. Follows no symbolic link.
Status UnmountPath(const std::string& mountpoint, bool lazy, dev_t device = 0);

/// Whether the daemon of the mount at `mountpoint` is gone. Sends it a request;
/// a daemon that does not answer within `kDeadMs` milliseconds counts as alive.
/// Do not call this in the daemon for its own mount, nor for a mount of another
/// user.
bool IsMountDead(const std::string& mountpoint);
inline constexpr int kDeadMs = 10'000;

}  // namespace txfs
