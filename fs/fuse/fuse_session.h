#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/posix/filesystem.h"
#include "journal/support/result.h"

namespace txfs {

/// Which object of a filesystem a path led to.
struct ObjectId {
  dev_t device = 0;
  ino_t ino = 0;
  friend bool operator==(const ObjectId&, const ObjectId&) = default;
};

struct MountOptions {
  std::string mountpoint;  ///< absolute, without symbolic links
  /// The directory that was checked; one that is there instead is refused.
  std::optional<ObjectId> checked = {};
  std::string source;  ///< first column of the mount table
  bool allow_other = false;
  bool read_only = false;
  std::vector<std::string>
      kernel_options;    ///< passed on: "noatime", "nosuid", ...
  unsigned threads = 0;  ///< 0: chosen by the number of processors
  /// Takes a warning, on any thread.
  std::function<void(const std::string&)> log = {};
  /// Called when serving is about to end, while requests are still answered:
  /// none may wait for long any more.
  std::function<void()> on_end = {};
};

/// One FUSE mount of a Filesystem: zero-message opens, infinite timeouts
/// (docs/design.md).
class FuseSession {
 public:
  /// Mounts. When it returns, requests queue up in the kernel until Run serves
  /// them. Errors, with remedy: no /dev/fuse, no fusermount3, allow_other not
  /// permitted, ...
  static Result<std::unique_ptr<FuseSession>> Mount(
      Filesystem& filesystem, const MountOptions& options);
  /// Unmounts lazily what is still mounted. Run must have returned.
  virtual ~FuseSession() = default;

  /// Serves until the mount is gone or Stop was called.
  virtual Status Run() = 0;
  /// Makes Run return. Async-signal-safe.
  virtual void Stop() = 0;
  /// Unmounts: EBUSY while in use, unless `lazy`.
  virtual Status Unmount(bool lazy) = 0;
  /// The st_dev of what it serves.
  [[nodiscard]] virtual dev_t device() const = 0;
  /// Whether the kernel is through with it, waiting up to `timeout_ms` for
  /// that. Other mount namespaces may have it still when it is unmounted in
  /// this one.
  virtual bool AwaitDisconnect(int timeout_ms) = 0;
  /// Tells the kernel to forget. Never called with a filesystem lock held.
  virtual void Invalidate(const StaleCaches& stale) = 0;
};

}  // namespace txfs
