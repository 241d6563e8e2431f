#pragma once

#include <thread>

#include "fs/fuse/fuse_notify.h"
#include "fs/posix/filesystem.h"
#include "journal/support/mutex.h"

namespace txfs {

/// What the kernel was told of base objects that others replaced, or whose
/// owner or mode others changed (Filesystem::SettleDoubts). A thread of its own
/// tells it anew, which may have to wait for requests in flight.
class StaleTold {
 public:
  /// Both outlive this.
  StaleTold(Filesystem& filesystem, KernelCaches& caches)
      : filesystem_(filesystem), caches_(caches) {}
  ~StaleTold() { End(); }
  StaleTold(const StaleTold&) = delete;
  StaleTold& operator=(const StaleTold&) = delete;

  /// Waits until the kernel has heard of what is under way, for which requests
  /// must be served; nothing is told afterwards.
  void End() EXCLUDES(mutex_);

  /// A request was answered with ESTALE.
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
  std::thread thread_ GUARDED_BY(mutex_);  ///< since the first of them
};

}  // namespace txfs
