#include "fs/fuse/fuse_refused.h"

#include <utility>

#include "journal/support/thread.h"

namespace txfs {

void RefusedPages::End() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

void RefusedPages::Forget(fuse_ino_t ino, off_t offset, size_t size) {
  {
    const MutexLock lock(mutex_);
    if (ends_) return;
    ranges_.push_back({ino, offset, size});
    // Without a thread to be had, the next one tries again.
    if (!thread_.joinable()) thread_ = StartThread([this] { Serve(); });
  }
  changed_.NotifyAll();
}

void RefusedPages::Serve() {
  for (;;) {
    Range range{};
    {
      const MutexLock lock(mutex_);
      while (ranges_.empty() && !ends_) changed_.Wait(mutex_);
      if (ends_) return;
      range = ranges_.front();
      ranges_.pop_front();
    }
    // Fails when the kernel does not know the inode any more: as well.
    (void)fuse_lowlevel_notify_inval_inode(session_, range.ino, range.offset,
                                           static_cast<off_t>(range.size));
  }
}

}  // namespace txfs
