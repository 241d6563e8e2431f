#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs {

/// One line of /proc/self/mountinfo; octal escapes are decoded.
struct MountEntry {
  int mount_id = 0;
  int parent_id = 0;
  uint32_t major = 0;
  uint32_t minor = 0;
  /// The directory or file of the filesystem that is mounted, by its path in
  /// it: "/", but in a bind mount of a part.
  std::string root;
  std::string mountpoint;
  std::string type;     ///< "fuse.txfs"
  std::string source;   ///< the workspace
  std::string options;  ///< of the mount, then of the filesystem
  /// The user that made the mount, from the kernel (user_id=); only for FUSE.
  std::optional<uid_t> owner = {};

  /// The st_dev of its files.
  [[nodiscard]] dev_t device() const;
  /// Whether its type is that of txfs. Any user can choose type and source: see
  /// is_own.
  [[nodiscard]] bool is_txfs() const { return type == "fuse.txfs"; }
  /// Whether it is a txfs mount of the calling user: check this, not is_txfs.
  /// In a user namespace, also true for the user outside to whom the caller is
  /// mapped.
  [[nodiscard]] bool is_own() const;
  /// Whether a program of another user serves its files and may never answer: a
  /// txfs mount that is not the caller's, or a FUSE mount that neither the
  /// caller nor root made.
  [[nodiscard]] bool is_strangers() const;
};

/// The mounts in `mountinfo`, in order; invalid lines are left out.
std::vector<MountEntry> ParseMountTable(std::string_view mountinfo);

/// The mounts that a process sees, oldest first. `process`: its name in /proc.
Result<std::vector<MountEntry>> ReadMountTable(
    const std::string& process = "self");

/// Whether this process reads its table again only when a mount has come, gone
/// or changed. For a command, which looks at the table some twenty times; not
/// for a daemon, which would miss the rename of a directory above a mountpoint.
/// A process that is forked does not keep it.
void KeepMountTable(bool keep);

/// The calling user's innermost txfs mount at `path` or above it; the topmost
/// of several on one mountpoint. Compares text and does not access the
/// filesystem, so that it works on a mount whose daemon is gone. `path` is made
/// absolute and normal.
std::optional<MountEntry> FindTxfsMount(const std::string& path);
std::optional<MountEntry> FindTxfsMount(const std::vector<MountEntry>& table,
                                        const std::string& path);
/// As FindTxfsMount, for mounts of any user.
std::optional<MountEntry> FindAnyTxfsMount(const std::string& path);

/// The mount_id of the mount that `fd` is in. The kernel answers; the
/// filesystem is not asked. 0 if unknown.
int MountIdOfDescriptor(int fd);

/// The mount of `table` that `fd` is in; null if it is not in `table`.
const MountEntry* MountOf(int fd, const std::vector<MountEntry>& table);

/// Whether `path`, absolute and normal, is `directory` or below it.
bool IsWithin(std::string_view path, std::string_view directory);

}  // namespace txfs
