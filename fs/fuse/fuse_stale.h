#pragma once

#include <thread>

#include "fs/fuse/fuse_notify.h"
#include "fs/posix/filesystem.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Attributes that the kernel has of base objects which another process
/// replaced, or whose owner or mode it changed (Filesystem::SettleDoubts). A
/// separate thread invalidates them, because it may have to wait for requests
/// in flight.
class StaleTold {
 public:
  /// Both outlive this.
  StaleTold(Filesystem& filesystem, KernelCaches& caches)
      : filesystem_(filesystem), caches_(caches) {}
  ~StaleTold() { End(); }
  StaleTold(const StaleTold&) = delete;
  StaleTold& operator=(const StaleTold&) = delete;

  /// Waits for the invalidation in progress, which needs requests to be served.
  /// Makes no further ones.
  void End() EXCLUDES(mutex_);

  /// Call it after a request was answered with ESTALE.
  void LookAgain() noexcept;

 private:
  void Wake() EXCLUDES(mutex_);
  void Serve() EXCLUDES(mutex_);

  Filesystem& filesystem_;
  KernelCaches& caches_;
  Mutex mutex_;
  CondVar changed_;
  bool wanted_ GUARDED_BY(mutex_) = false;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);  ///< started by the first call
};

}  // namespace txfs
