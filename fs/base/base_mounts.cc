#include "fs/base/base_mounts.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <utility>

#include "fs/host/mount_table.h"
#include "journal/support/file.h"

namespace txfs {

uint64_t MountIdOf(int fd) {
  struct statx st{};
  const bool known = ::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 &&
                     (st.stx_mask & STATX_MNT_ID) != 0;
  // Linux before 5.8 tells it in /proc only.
  return known ? st.stx_mnt_id : static_cast<uint64_t>(MountIdOfDescriptor(fd));
}

Result<BaseMounts> BaseMounts::Read(const BaseDirectory& base) {
  BaseMounts mounts;
  const std::string root = PathOfFd(base.root());
  const std::string within = root == "/" ? root : root + "/";
  // By parent, for what covers the base (our own mount) has mounts, too.
  std::set<uint64_t> ids{MountIdOf(base.root())};
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  for (size_t known = 0; known != ids.size();) {
    known = ids.size();
    for (const MountEntry& entry : table) {
      if (!ids.contains(static_cast<uint64_t>(entry.parent_id)) ||
          !entry.mountpoint.starts_with(within)) {
        continue;
      }
      ids.insert(static_cast<uint64_t>(entry.mount_id));
      mounts.mountpoints_.insert(entry.mountpoint.substr(within.size()));
    }
  }
  return mounts;
}

Result<std::shared_ptr<const BaseMounts>> CurrentMounts::Get() {
  const MutexLock lock(mutex_);
  if (!table_.valid()) {
    table_ = TRY(OpenAt(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY));
  }
  pollfd table{.fd = table_.get(), .events = POLLPRI, .revents = 0};
  const bool changed = ::poll(&table, 1, 0) != 0;
  if (mounts_ && !changed) return mounts_;
  // If that fails, the next call tries again.
  mounts_.reset();
  mounts_ = std::make_shared<const BaseMounts>(TRY(BaseMounts::Read(base_)));
  return mounts_;
}

std::string BaseMounts::Of(std::string_view path) const {
  // There are few of them, and a path may be long.
  std::string_view innermost;
  for (const std::string& mountpoint : mountpoints_) {
    const bool is_inner = mountpoint.size() > innermost.size();
    if (is_inner && IsAtOrBelow(path, mountpoint)) innermost = mountpoint;
  }
  return std::string(innermost);
}

std::optional<std::string> BaseMounts::AtOrBelow(
    const std::string& path) const {
  if (mountpoints_.contains(path)) return path;
  const std::string below = JoinPath(path, "");
  const auto found = mountpoints_.lower_bound(below);
  if (found == mountpoints_.end() || !found->starts_with(below)) {
    return std::nullopt;
  }
  return *found;
}

}  // namespace txfs
