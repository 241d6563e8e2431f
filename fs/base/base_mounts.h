#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "fs/base/base_directory.h"
#include "journal/support/result.h"

namespace txfs {

/// The filesystems mounted inside the base, by base path of the mountpoint. Two
/// mounts of one filesystem count as two: rename(2) cannot cross them.
class BaseMounts {
 public:
  /// Reads the mount table of this process.
  static Result<BaseMounts> Read(const BaseDirectory& base);

  /// The innermost mountpoint at `path` or above it; "" for the filesystem of
  /// the base's root.
  [[nodiscard]] std::string Of(std::string_view path) const;
  /// A mountpoint at `path` or below it.
  [[nodiscard]] std::optional<std::string> AtOrBelow(
      const std::string& path) const;

 private:
  std::set<std::string> mountpoints_;
};

/// Identifies a mount, also among those of one filesystem; 0 if unknown.
[[nodiscard]] uint64_t MountIdOf(int fd);

}  // namespace txfs
