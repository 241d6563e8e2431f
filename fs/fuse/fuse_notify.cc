#include "fs/fuse/fuse_notify.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <functional>
#include <span>
#include <thread>
#include <vector>

#include "journal/support/thread.h"

namespace txfs {
namespace {

// Linux 6.16; not in Debian 12's headers.
constexpr int kNotifyIncrementEpoch = 8;

/// Telling of so many names one by one takes longer than the lookups that the
/// one message costs.
constexpr size_t kMany = 1000;

/// Shows all of `inos` to `visit`; where they are many, on several threads.
void ForEachInParallel(std::span<const Ino> inos,
                       const std::function<void(Ino)>& visit) {
  constexpr size_t kAtOnce = 256;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (;;) {
      const size_t from = std::min(next.fetch_add(kAtOnce), inos.size());
      if (from == inos.size()) return;
      const size_t count = std::min(kAtOnce, inos.size() - from);
      std::ranges::for_each(inos.subspan(from, count), visit);
    }
  };
  std::vector<std::thread> helpers;
  const size_t wanted = inos.size() < kMany
                            ? 1
                            : std::min(std::thread::hardware_concurrency(), 4U);
  while (helpers.size() + 1 < wanted) helpers.push_back(StartThread(work));
  work();
  for (std::thread& helper : helpers) {
    if (helper.joinable()) helper.join();
  }
}

}  // namespace

void KernelCaches::IncrementEpoch() {
  if (!has_epoch_) return;
  fuse_out_header header{};
  header.len = sizeof header;
  header.error = kNotifyIncrementEpoch;
  if (::write(device_, &header, sizeof header) < 0 && errno == EINVAL) {
    has_epoch_ = false;
  }
}

void KernelCaches::Forget(const StaleCaches& stale) {
  // One message makes every name of the mount go through a lookup again, and
  // the kernel let go of all that it has: dear, unless many names are stale.
  // They follow all the same, so that inodes that are gone are let go.
  if (stale.names.size() >= kMany) IncrementEpoch();
  // As unlink(2) does, so that processes that watch the file know.
  for (const StaleCaches::Watched& name : stale.watched) {
    if (name.was == kNoIno) continue;
    fuse_lowlevel_notify_delete(session_, Raw(name.parent), Raw(name.was),
                                name.name.c_str(), name.name.size());
  }
  for (const StaleCaches::Name& name : stale.names) {
    fuse_lowlevel_notify_inval_entry(session_, Raw(name.parent),
                                     name.name.c_str(), name.name.size());
  }
  ForEachInParallel(stale.inodes, [&](Ino ino) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(ino), 0, 0);
  });
  ForEachInParallel(stale.attributes, [&](Ino ino) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(ino), -1, 0);
  });
}

}  // namespace txfs
