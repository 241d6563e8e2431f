#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "fs/base/base_directory.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

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

/// The BaseMounts of this moment. Reads the mount table when it has changed.
/// Thread-safe.
class CurrentMounts {
 public:
  /// `base` must outlive it.
  explicit CurrentMounts(const BaseDirectory& base) : base_(base) {}
  Result<std::shared_ptr<const BaseMounts>> Get() EXCLUDES(mutex_);

 private:
  const BaseDirectory& base_;
  Mutex mutex_;
  UniqueFd table_ GUARDED_BY(mutex_);  ///< the kernel marks its changes
  std::shared_ptr<const BaseMounts> mounts_ GUARDED_BY(mutex_);
};

/// Identifies a mount, also among those of one filesystem; 0 if unknown.
[[nodiscard]] uint64_t MountIdOf(int fd);

}  // namespace txfs
