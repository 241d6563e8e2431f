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
  std::string mountpoint;
  std::string type;     ///< "fuse.txfs"
  std::string source;   ///< the workspace
  std::string options;  ///< of the mount, then of the filesystem
  /// The user that made it, as the kernel has it (user_id=); only of FUSE.
  std::optional<uid_t> owner = {};

  /// The st_dev of its files.
  [[nodiscard]] dev_t device() const;
  /// Whether its type is txfs', whoever made it: type and source are text that
  /// anybody may choose.
  [[nodiscard]] bool is_txfs() const { return type == "fuse.txfs"; }
  /// Whether it is a txfs mount of the calling user, which is what counts. In a
  /// user namespace also of the user outside that the caller stands for.
  [[nodiscard]] bool is_own() const;
  /// Whether another user's program serves its files, which need never answer:
  /// a txfs mount that is not the caller's, or any FUSE mount that neither the
  /// caller nor root made.
  [[nodiscard]] bool is_strangers() const;
};

/// The mounts in `mountinfo` in order; lines that make no sense are left out.
std::vector<MountEntry> ParseMountTable(std::string_view mountinfo);

/// The mounts that a process sees, oldest first: by its name in /proc.
Result<std::vector<MountEntry>> ReadMountTable(
    const std::string& process = "self");

/// The calling user's innermost txfs mount at `path` or above it, of several on
/// one mountpoint the top one. Compares text and never asks the filesystem, so
/// that it works on a mount whose daemon is gone. `path` is made absolute and
/// normal.
std::optional<MountEntry> FindTxfsMount(const std::string& path);
std::optional<MountEntry> FindTxfsMount(const std::vector<MountEntry>& table,
                                        const std::string& path);
/// The same, whoever made it.
std::optional<MountEntry> FindAnyTxfsMount(const std::string& path);

/// The mount_id of the mount that `fd` is in, from the kernel alone: the
/// filesystem is not asked. 0 when it cannot be told.
int MountIdOfDescriptor(int fd);

/// The mount of `table` that `fd` is in, if it is there.
const MountEntry* MountOf(int fd, const std::vector<MountEntry>& table);

/// Whether `path`, absolute and normal, is `directory` or below it.
bool IsWithin(std::string_view path, std::string_view directory);

}  // namespace txfs
