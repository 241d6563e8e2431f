#pragma once

#include <atomic>
#include <set>
#include <vector>

#include "journal/base/mutex.h"
#include "journal/base/types.h"

namespace txfs {

/// Inodes of which the kernel was told what the base does not bear out any
/// more: nothing of the base is shown of them until the kernel was told anew.
/// Thread-safe.
class Doubts {
 public:
  void Add(Ino ino);
  [[nodiscard]] bool Has(Ino ino);
  [[nodiscard]] std::vector<Ino> All();
  void Drop(const std::vector<Ino>& inos);

 private:
  std::atomic<size_t> count_ = 0;  ///< mostly there is none: no lock then
  Mutex mutex_;
  std::set<Ino> inos_ GUARDED_BY(mutex_);
};

}  // namespace txfs
