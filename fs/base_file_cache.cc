#include "fs/base_file_cache.h"

namespace txfs {
namespace {

constexpr size_t kMaxOpen = 256;

}  // namespace

Result<SharedFd> BaseFileCache::Get(Ino ino, const std::string& path) {
  {
    const MutexLock lock(mutex_);
    const auto found = by_ino_.find(ino);
    if (found != by_ino_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return found->second->fd;
    }
  }
  SharedFd fd = TRY(base_.OpenFile(path));
  const MutexLock lock(mutex_);
  EraseLocked(ino);
  recent_.push_front({ino, fd});
  by_ino_[ino] = recent_.begin();
  if (recent_.size() > kMaxOpen) EraseLocked(recent_.back().ino);
  return fd;
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
