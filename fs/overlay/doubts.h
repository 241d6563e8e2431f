#pragma once

#include <atomic>
#include <set>
#include <vector>

#include "journal/support/mutex.h"
#include "journal/support/types.h"

namespace txfs {

/// Inodes whose base object contradicts the attributes that the kernel cached.
/// Operations on their base objects fail until the kernel has dropped these
/// attributes and asked again. Thread-safe.
class Doubts {
 public:
  void Add(Ino ino);
  /// Whether `ino` is doubted or awaited.
  [[nodiscard]] bool Has(Ino ino);
  /// Whether the kernel has dropped the cached attributes and has not asked
  /// again. Requests that the kernel admitted by the old attributes may still
  /// be in flight.
  [[nodiscard]] bool IsAwaited(Ino ino);
  [[nodiscard]] std::vector<Ino> All();
  /// Ends the doubt about `inos`; those also in `dropped` become awaited.
  void Settle(const std::vector<Ino>& inos, const std::set<Ino>& dropped);
  /// Notes that the kernel receives the owner and mode of `ino`.
  void Tell(Ino ino);

 private:
  void Count() REQUIRES(mutex_) { count_ = inos_.size() + awaited_.size(); }

  std::atomic<size_t> count_ = 0;  ///< usually 0: readers skip the lock
  Mutex mutex_;
  std::set<Ino> inos_ GUARDED_BY(mutex_);
  std::set<Ino> awaited_ GUARDED_BY(mutex_);
};

}  // namespace txfs
