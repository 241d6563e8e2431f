#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "fs/base/base_directory.h"
#include "journal/support/result.h"

namespace txfs {

/// The filesystems mounted inside the base, by base path of the mountpoint.
/// Mounts of one filesystem at two places count as two: no rename crosses from
/// one to the other.
class BaseMounts {
 public:
  /// As this process sees them.
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

/// Tells mounts apart, those of one filesystem too; 0 when it is not known.
[[nodiscard]] uint64_t MountIdOf(int fd);

}  // namespace txfs
