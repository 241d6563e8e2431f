#pragma once

#include <atomic>
#include <set>
#include <vector>

#include "journal/support/mutex.h"
#include "journal/support/types.h"

namespace txfs {

/// Inodes of which the kernel was told what the base does not bear out any
/// more: nothing of the base is shown of them until the kernel has dropped that
/// and asked anew. Thread-safe.
class Doubts {
 public:
  void Add(Ino ino);
  /// Whether it is doubted, or awaited.
  [[nodiscard]] bool Has(Ino ino);
  /// Whether the kernel has dropped what it was told, and did not ask since:
  /// whom it let in before may still be on the way.
  [[nodiscard]] bool IsAwaited(Ino ino);
  [[nodiscard]] std::vector<Ino> All();
  /// `inos` are doubted no more; those of them in `dropped` are awaited.
  void Settle(const std::vector<Ino>& inos, const std::set<Ino>& dropped);
  /// The kernel is told its owner and mode.
  void Tell(Ino ino);

 private:
  void Count() REQUIRES(mutex_) { count_ = inos_.size() + awaited_.size(); }

  std::atomic<size_t> count_ = 0;  ///< mostly there is none: no lock then
  Mutex mutex_;
  std::set<Ino> inos_ GUARDED_BY(mutex_);
  std::set<Ino> awaited_ GUARDED_BY(mutex_);
};

}  // namespace txfs
