#pragma once

#include <cstddef>
#include <deque>
#include <thread>

#include "fs/fuse/fuse_libfuse.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Pages that a process changed through a mapping, and whose write-back the
/// policy refused. The kernel shows them to all processes until they are
/// invalidated. A separate thread does that, because it may have to wait for
/// requests in flight.
class RefusedPages {
 public:
  /// `session`: outlives this.
  explicit RefusedPages(fuse_session* session) : session_(session) {}
  ~RefusedPages() { End(); }
  RefusedPages(const RefusedPages&) = delete;
  RefusedPages& operator=(const RefusedPages&) = delete;

  /// Waits for the invalidation in progress, which needs requests to be served.
  /// Makes no further ones.
  void End() EXCLUDES(mutex_);

  /// Invalidates a range after the reply to its request. Offset and size in
  /// bytes.
  void Forget(fuse_ino_t ino, off_t offset, size_t size) EXCLUDES(mutex_);

 private:
  struct Range {
    fuse_ino_t ino;
    off_t offset;
    size_t size;
  };
  void Serve() EXCLUDES(mutex_);

  fuse_session* const session_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<Range> ranges_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_ GUARDED_BY(mutex_);  ///< started by the first range
};

}  // namespace txfs
