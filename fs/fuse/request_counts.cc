#include "fs/fuse/request_counts.h"

#include <linux/fuse.h>

#include <string_view>
#include <utility>

namespace txfs {
namespace {

constexpr auto kNames = std::to_array<std::pair<uint32_t, std::string_view>>({
    {FUSE_LOOKUP, "LOOKUP"},
    {FUSE_FORGET, "FORGET"},
    {FUSE_GETATTR, "GETATTR"},
    {FUSE_SETATTR, "SETATTR"},
    {FUSE_READLINK, "READLINK"},
    {FUSE_SYMLINK, "SYMLINK"},
    {FUSE_MKNOD, "MKNOD"},
    {FUSE_MKDIR, "MKDIR"},
    {FUSE_UNLINK, "UNLINK"},
    {FUSE_RMDIR, "RMDIR"},
    {FUSE_RENAME, "RENAME"},
    {FUSE_LINK, "LINK"},
    {FUSE_OPEN, "OPEN"},
    {FUSE_READ, "READ"},
    {FUSE_WRITE, "WRITE"},
    {FUSE_STATFS, "STATFS"},
    {FUSE_RELEASE, "RELEASE"},
    {FUSE_FSYNC, "FSYNC"},
    {FUSE_SETXATTR, "SETXATTR"},
    {FUSE_GETXATTR, "GETXATTR"},
    {FUSE_LISTXATTR, "LISTXATTR"},
    {FUSE_REMOVEXATTR, "REMOVEXATTR"},
    {FUSE_FLUSH, "FLUSH"},
    {FUSE_INIT, "INIT"},
    {FUSE_OPENDIR, "OPENDIR"},
    {FUSE_READDIR, "READDIR"},
    {FUSE_RELEASEDIR, "RELEASEDIR"},
    {FUSE_FSYNCDIR, "FSYNCDIR"},
    {FUSE_GETLK, "GETLK"},
    {FUSE_SETLK, "SETLK"},
    {FUSE_SETLKW, "SETLKW"},
    {FUSE_ACCESS, "ACCESS"},
    {FUSE_CREATE, "CREATE"},
    {FUSE_INTERRUPT, "INTERRUPT"},
    {FUSE_BMAP, "BMAP"},
    {FUSE_DESTROY, "DESTROY"},
    {FUSE_IOCTL, "IOCTL"},
    {FUSE_POLL, "POLL"},
    {FUSE_NOTIFY_REPLY, "NOTIFY_REPLY"},
    {FUSE_BATCH_FORGET, "BATCH_FORGET"},
    {FUSE_FALLOCATE, "FALLOCATE"},
    {FUSE_READDIRPLUS, "READDIRPLUS"},
    {FUSE_RENAME2, "RENAME2"},
    {FUSE_LSEEK, "LSEEK"},
    {FUSE_COPY_FILE_RANGE, "COPY_FILE_RANGE"},
    {FUSE_SYNCFS, "SYNCFS"},
    // Linux 6.2 and 6.6; not in Debian 12's headers.
    {51, "TMPFILE"},
    {52, "STATX"},
});

}  // namespace

std::map<std::string, uint64_t> RequestCounts::Named() const {
  std::map<std::string, uint64_t> named;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const uint64_t count = counts_[i].load(std::memory_order_relaxed);
    if (count == 0) continue;
    std::string_view name = "OTHER";
    for (const auto& [opcode, known] : kNames) {
      if (opcode == i) name = known;
    }
    named[std::string(name)] += count;
  }
  return named;
}

}  // namespace txfs
