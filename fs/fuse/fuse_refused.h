#pragma once

#include <cstddef>
#include <deque>
#include <thread>

#include "fs/fuse/fuse_libfuse.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Pages that a process changed through a mapping, and whose write-back was
/// refused: the kernel shows them to everybody until it is told to forget them.
/// A thread of its own tells it, which may have to wait for requests in flight.
class RefusedPages {
 public:
  /// `session`: outlives this.
  explicit RefusedPages(fuse_session* session) : session_(session) {}
  ~RefusedPages() { End(); }
  RefusedPages(const RefusedPages&) = delete;
  RefusedPages& operator=(const RefusedPages&) = delete;

  /// Waits until the kernel has heard of what is under way, for which requests
  /// must be served; nothing is told afterwards.
  void End() EXCLUDES(mutex_);

  /// The request has been answered. Offset and size in bytes.
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
  std::thread thread_ GUARDED_BY(mutex_);  ///< since the first of them
};

}  // namespace txfs
