#include "fs/base/base_file_cache.h"

#include <sys/stat.h>

namespace txfs {
namespace {

constexpr size_t kMaxOpen = 256;

}  // namespace

bool Told::Covers(const struct stat& now) const {
  // To search a directory is what leads to what is in it.
  const uint32_t reads = S_ISDIR(mode) ? 0555 : 0444;
  return (mode & S_IFMT) == (now.st_mode & S_IFMT) && uid == now.st_uid &&
         gid == now.st_gid && (mode & reads & ~now.st_mode) == 0;
}

Result<SharedFd> BaseFileCache::Get(Ino ino, const std::string& path,
                                    const BaseIdentity& origin,
                                    OnOther on_other) {
  {
    const MutexLock lock(mutex_);
    const auto found = by_ino_.find(ino);
    // One that was opened when the inode was another file is not it.
    if (found != by_ino_.end() && found->second->identity == origin) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->fd;
    }
  }
  auto opened = base_.OpenFile(path);
  const bool must_be = on_other == OnOther::kFail;
  if (!opened && must_be && IsGone(opened.error())) {
    return Fail(ESTALE, path + " is gone from the base");
  }
  SharedFd fd = TRY(std::move(opened));
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, "stat " + path);
  if (!S_ISREG(st.st_mode)) {
    return Fail(ESTALE, path + " was replaced in the base");
  }
  const BaseIdentity identity{.dev = base_.RelativeDevice(st.st_dev),
                              .ino = st.st_ino};
  if (must_be && identity != origin) {
    return Fail(ESTALE, path + " was replaced in the base");
  }
  Put(ino, identity, fd);
  return fd;
}

void BaseFileCache::Put(Ino ino, const BaseIdentity& identity, SharedFd fd) {
  const MutexLock lock(mutex_);
  EraseLocked(ino);
  recent_.push_front({ino, identity, std::move(fd)});
  by_ino_[ino] = recent_.begin();
  if (recent_.size() > kMaxOpen) EraseLocked(recent_.back().ino);
}

SharedFd BaseFileCache::Find(Ino ino, const BaseIdentity& origin) {
  const MutexLock lock(mutex_);
  const auto found = by_ino_.find(ino);
  if (found == by_ino_.end() || found->second->identity != origin) {
    return nullptr;
  }
  return found->second->fd;
}

void BaseFileCache::Drop(Ino ino) {
  const MutexLock lock(mutex_);
  EraseLocked(ino);
}

void BaseFileCache::Clear() {
  const MutexLock lock(mutex_);
  recent_.clear();
  by_ino_.clear();
}

void BaseFileCache::EraseLocked(Ino ino) {
  const auto found = by_ino_.find(ino);
  if (found == by_ino_.end()) return;
  recent_.erase(found->second);
  by_ino_.erase(found);
}

}  // namespace txfs
