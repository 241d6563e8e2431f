#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fs/base/base_mounts.h"
#include "fs/tree/tree.h"

namespace txfs {

/// Which names are on another filesystem of the base, or on another mount of
/// the same one. A name that the transaction made is where the nearest
/// directory of the base above it is.
class Crossings {
 public:
  Crossings(const Tree& tree, const BaseMounts& mounts)
      : tree_(tree), mounts_(mounts) {}

  /// Whether a filesystem is mounted at (directory, name), which is `inode`.
  [[nodiscard]] bool IsMountpoint(const Inode& directory, std::string_view name,
                                  const Inode& inode) const;
  /// The mount of a directory: its path; empty: that of the workspace.
  [[nodiscard]] std::string MountOf(const Inode& directory) const;
  /// Whether the directories are on different mounts of one filesystem.
  [[nodiscard]] bool AreBindMounts(const Inode& a, const Inode& b) const;
  /// Whether `directory` may get a hard link to `file`.
  [[nodiscard]] bool MayLink(const Inode& file, const Inode& directory) const;

 private:
  const Tree& tree_;
  const BaseMounts& mounts_;
};

}  // namespace txfs
