#pragma once

#include <atomic>
#include <cstdint>

#include "journal/journal.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"

namespace txfs {

/// Has the journal set as much disk space aside as the reservations of all
/// files need. Thread-safe. The journal is not swapped during a call.
class PromisedSpace {
 public:
  /// Bytes that all reservations need, without what is being written.
  std::atomic<uint64_t>& needed() { return needed_; }

  /// Sets space aside for `bytes` more, which count from now on. ENOSPC,
  /// EDQUOT, EOPNOTSUPP: nothing changed.
  Status Promise(Journal& journal, uint64_t bytes) EXCLUDES(mutex_);
  /// While this exists, a write has the space for `bytes` that a reservation
  /// has. The write lowers `bytes` by those that are reserved no more.
  class Use {
   public:
    Use(PromisedSpace& space, Journal& journal, const uint64_t& bytes);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    PromisedSpace& space_;
    Journal& journal_;
    const uint64_t& bytes_;
    const uint64_t before_;  ///< value of `bytes_`
    uint64_t freed_ = 0;
  };
  /// Gives back what no reservation needs.
  void Trim(Journal& journal) EXCLUDES(mutex_);
  /// Gives all of it back, for work that ends the journal. Restore sets it
  /// aside again if the journal goes on.
  void GiveUp(Journal& journal) EXCLUDES(mutex_);
  void Restore(Journal& journal) EXCLUDES(mutex_);
  /// Another journal takes over, which has nothing set aside.
  void JournalEnded() EXCLUDES(mutex_);

 private:
  Status Set(Journal& journal, uint64_t bytes) REQUIRES(mutex_);

  std::atomic<uint64_t> needed_ = 0;
  std::atomic<uint64_t> aside_ = 0;  ///< changed with mutex_ held
  Mutex mutex_;
  int uses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace txfs
