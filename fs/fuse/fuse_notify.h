#pragma once

#include <atomic>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"

namespace txfs {

/// Invalidates what the kernel has cached of one mount.
class KernelCaches {
 public:
  /// `device`: the descriptor of the connection that `session` serves.
  KernelCaches(fuse_session* session, int device)
      : session_(session), device_(device) {}

  /// Do not call this in a request's handler, nor with a lock for which a
  /// handler waits: the kernel may wait for requests in flight.
  void Forget(const StaleCaches& stale);

 private:
  void IncrementEpoch();

  fuse_session* session_;
  int device_;
  std::atomic<bool> has_epoch_{true};
};

}  // namespace txfs
