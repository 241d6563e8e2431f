#include "fs/fuse/fuse_notify.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cerrno>

#include "journal/support/parallel.h"

namespace txfs {
namespace {

// Linux 6.16; not in Debian 12's headers.
constexpr int kNotifyIncrementEpoch = 8;

/// Telling of so many names one by one takes longer than the lookups that the
/// one message costs.
constexpr size_t kMany = 1000;

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
  InParallel(stale.inodes.size(), [&](size_t i) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(stale.inodes[i]), 0, 0);
  });
  InParallel(stale.attributes.size(), [&](size_t i) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(stale.attributes[i]), -1, 0);
  });
}

}  // namespace txfs
