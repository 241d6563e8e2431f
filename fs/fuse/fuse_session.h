#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/posix/filesystem.h"
#include "fs/posix/path_event.h"
#include "journal/support/result.h"

namespace txfs {

/// The identity of an object in a filesystem.
struct ObjectId {
  dev_t device = 0;
  ino_t ino = 0;
  friend bool operator==(const ObjectId&, const ObjectId&) = default;
};

struct MountOptions {
  std::string mountpoint;  ///< absolute, without symbolic links
  /// The directory that was checked. If another one is there, the mount fails.
  std::optional<ObjectId> checked = {};
  std::string source;  ///< first column of the mount table
  bool allow_other = false;
  bool read_only = false;
  std::vector<std::string>
      kernel_options;    ///< passed to the kernel: "noatime", "nosuid", ...
  unsigned threads = 0;  ///< 0: based on the number of processors
  /// Receives warnings, on any thread.
  std::function<void(const std::string&)> log = {};
  /// Called before serving ends, while requests are still answered. From then
  /// on, no request may wait for long.
  std::function<void()> on_end = {};
};

/// One FUSE mount of a Filesystem: zero-message opens, infinite timeouts
/// (docs/design.md).
class FuseSession {
 public:
  /// Mounts. When it returns, requests queue in the kernel until Run serves
  /// them. Errors, with remedy: no /dev/fuse, no fusermount3, allow_other not
  /// permitted, ...
  static Result<std::unique_ptr<FuseSession>> Mount(
      Filesystem& filesystem, const MountOptions& options);
  /// Unmounts lazily if it is still mounted. Run must have returned.
  virtual ~FuseSession() = default;

  /// Serves until the mount is gone or Stop is called.
  virtual Status Run() = 0;
  /// Makes Run return. Async-signal-safe.
  virtual void Stop() = 0;
  /// Unmounts: EBUSY while in use, unless `lazy`.
  virtual Status Unmount(bool lazy) = 0;
  /// The st_dev of the mount.
  [[nodiscard]] virtual dev_t device() const = 0;
  /// RequestCounts::Named of the mount.
  [[nodiscard]] virtual std::map<std::string, uint64_t> requests() const = 0;
  /// Waits up to `timeout_ms` for the end of the connection; returns whether it
  /// has ended. After an unmount here, other mount namespaces may still have
  /// the mount.
  virtual bool AwaitDisconnect(int timeout_ms) = 0;
  /// Invalidates caches of the kernel. Do not call it with a filesystem lock
  /// held.
  virtual void Invalidate(const StaleCaches& stale) = 0;
  /// Makes the kernel report `events` to processes that watch the paths. Do not
  /// call it with a lock held for which an operation waits.
  virtual void Announce(const std::vector<PathEvent>& events) = 0;
};

}  // namespace txfs
