#include "fs/fuse_notify.h"

#include <linux/fuse.h>
#include <unistd.h>

#include <cerrno>

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
  for (const StaleCaches::Name& name : stale.names) {
    fuse_lowlevel_notify_inval_entry(session_, Raw(name.parent),
                                     name.name.c_str(), name.name.size());
  }
  for (const Ino ino : stale.inodes) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(ino), 0, 0);
  }
  for (const Ino ino : stale.attributes) {
    fuse_lowlevel_notify_inval_inode(session_, Raw(ino), -1, 0);
  }
}

}  // namespace txfs
