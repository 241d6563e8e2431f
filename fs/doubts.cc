#include "fs/doubts.h"

namespace txfs {

void Doubts::Add(Ino ino) {
  const MutexLock lock(mutex_);
  inos_.insert(ino);
  count_ = inos_.size();
}

bool Doubts::Has(Ino ino) {
  if (count_ == 0) return false;
  const MutexLock lock(mutex_);
  return inos_.contains(ino);
}

std::vector<Ino> Doubts::All() {
  const MutexLock lock(mutex_);
  return {inos_.begin(), inos_.end()};
}

void Doubts::Drop(const std::vector<Ino>& inos) {
  const MutexLock lock(mutex_);
  for (const Ino ino : inos) inos_.erase(ino);
  count_ = inos_.size();
}

}  // namespace txfs
