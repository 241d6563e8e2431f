#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/base/result.h"

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

  /// The st_dev of its files.
  [[nodiscard]] dev_t device() const;
};

/// The mounts in `mountinfo` in order; lines that make no sense are left out.
std::vector<MountEntry> ParseMountTable(std::string_view mountinfo);

/// The mounts that a process sees, oldest first: by its name in /proc.
Result<std::vector<MountEntry>> ReadMountTable(
    const std::string& process = "self");

/// The innermost txfs mount at `path` or above it, of several on one mountpoint
/// the top one. Compares text and never asks the filesystem, so that it works
/// on a mount whose daemon is gone. `path` is made absolute and normal.
std::optional<MountEntry> FindTxfsMount(const std::string& path);
std::optional<MountEntry> FindTxfsMount(const std::vector<MountEntry>& table,
                                        const std::string& path);

/// Whether `path`, absolute and normal, is `directory` or below it.
bool IsWithin(std::string_view path, std::string_view directory);

}  // namespace txfs
