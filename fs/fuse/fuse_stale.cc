#include "fs/fuse/fuse_stale.h"

#include <utility>

#include "fs/fuse/fuse_reply.h"
#include "journal/support/thread.h"

namespace txfs {

void StaleTold::End() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (thread.joinable()) thread.join();
}

void StaleTold::LookAgain() noexcept {
  // Without a thread to be had, the next one tries again.
  (void)Guard([this]() -> Status {
    Wake();
    return {};
  });
}

void StaleTold::Wake() {
  {
    const MutexLock lock(mutex_);
    if (ends_) return;
    wanted_ = true;
    if (!thread_.joinable()) thread_ = StartThread([this] { Serve(); });
  }
  changed_.NotifyAll();
}

void StaleTold::Serve() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!wanted_ && !ends_) changed_.Wait(mutex_);
      if (ends_) return;
      wanted_ = false;
    }
    (void)Guard([this]() -> Status {
      filesystem_.SettleDoubts(
          [this](const StaleCaches& stale) { caches_.Forget(stale); });
      return {};
    });
  }
}

}  // namespace txfs
