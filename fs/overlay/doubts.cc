#include "fs/overlay/doubts.h"

namespace txfs {

void Doubts::Add(Ino ino) {
  const MutexLock lock(mutex_);
  inos_.insert(ino);
  Count();
}

bool Doubts::Has(Ino ino) {
  if (count_ == 0) return false;
  const MutexLock lock(mutex_);
  return inos_.contains(ino) || awaited_.contains(ino);
}

bool Doubts::IsAwaited(Ino ino) {
  if (count_ == 0) return false;
  const MutexLock lock(mutex_);
  return awaited_.contains(ino) && !inos_.contains(ino);
}

std::vector<Ino> Doubts::All() {
  const MutexLock lock(mutex_);
  return {inos_.begin(), inos_.end()};
}

void Doubts::Settle(const std::vector<Ino>& inos,
                    const std::set<Ino>& dropped) {
  const MutexLock lock(mutex_);
  for (const Ino ino : inos) {
    inos_.erase(ino);
    if (dropped.contains(ino)) awaited_.insert(ino);
  }
  Count();
}

void Doubts::Tell(Ino ino) {
  if (count_ == 0) return;
  const MutexLock lock(mutex_);
  // As long as the inode is doubted, the kernel may receive the old attributes.
  if (inos_.contains(ino)) return;
  awaited_.erase(ino);
  Count();
}

}  // namespace txfs
