#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <utility>

#include "journal/change.h"
#include "journal/support/bytes.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"

namespace txfs {

/// What a run may write and make; 0: no limit.
struct RunLimits {
  uint64_t bytes = 0;    ///< of content, attributes and targets of links
  uint64_t objects = 0;  ///< files, directories and so on
  uint64_t notes = 0;    ///< bytes of what the journal says of the operations

  /// With as much for the notes as for the rest, and a little more.
  static RunLimits Of(uint64_t bytes, uint64_t objects) {
    constexpr uint64_t kMore = 64 << 20;
    return {.bytes = bytes,
            .objects = objects,
            .notes = bytes == 0 ? 0 : bytes + kMore};
  }
  [[nodiscard]] bool any() const { return bytes != 0 || objects != 0; }
};

enum class RunLimit : uint8_t { kBytes, kObjects };

/// Counts what a run writes and makes, and refuses what exceeds its limits.
/// Nothing that was written counts less because it was overwritten or deleted.
/// Thread-safe; a leaf lock.
class RunBudget {
 public:
  using Listener = std::function<void(RunLimit)>;

  /// Counts from 0 on. `on_exceeded` is called for each refusal, with locks
  /// held, and must not wait.
  void Set(const RunLimits& limits, Listener on_exceeded) EXCLUDES(mutex_);

  /// Takes what the journal needs for the log of `change`. EDQUOT: it is not
  /// there.
  Status TakeNotes(const Change& change) EXCLUDES(mutex_);

  /// What one operation takes, and gives back unless it is done.
  class Share {
   public:
    explicit Share(RunBudget& budget) : budget_(budget) {}
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// EDQUOT: it is not there. Call it once.
    Status Take(uint64_t bytes, uint64_t objects);
    void Keep() { bytes_ = objects_ = 0; }

   private:
    RunBudget& budget_;
    uint64_t bytes_ = 0, objects_ = 0, period_ = 0;
  };

 private:
  static bool Fits(uint64_t used, uint64_t more, uint64_t limit) {
    return limit == 0 || more == 0 || (used <= limit && more <= limit - used);
  }
  std::unexpected<Error> Refuse(RunLimit limit) REQUIRES(mutex_) {
    if (on_exceeded_) on_exceeded_(limit);
    return Fail(EDQUOT, "the run may not write more");
  }

  std::atomic<bool> limited_ = false;
  Mutex mutex_;
  RunLimits limits_ GUARDED_BY(mutex_);
  RunLimits used_ GUARDED_BY(mutex_);
  uint64_t period_ GUARDED_BY(mutex_) = 0;  ///< number of the call of Set
  Listener on_exceeded_ GUARDED_BY(mutex_);
};

inline void RunBudget::Set(const RunLimits& limits, Listener on_exceeded) {
  const MutexLock lock(mutex_);
  limits_ = limits;
  used_ = {};
  ++period_;
  on_exceeded_ = std::move(on_exceeded);
  limited_ = limits.any();
}

inline Status RunBudget::TakeNotes(const Change& change) {
  if (!limited_) return {};
  Bytes encoded;
  EncodeChange(change, encoded);
  const MutexLock lock(mutex_);
  if (!Fits(used_.notes, encoded.size(), limits_.notes)) {
    return Refuse(RunLimit::kBytes);
  }
  used_.notes += encoded.size();
  return {};
}

inline Status RunBudget::Share::Take(uint64_t bytes, uint64_t objects) {
  if (!budget_.limited_) return {};
  const MutexLock lock(budget_.mutex_);
  RunLimits& used = budget_.used_;
  const bool has_bytes = Fits(used.bytes, bytes, budget_.limits_.bytes);
  if (!has_bytes || !Fits(used.objects, objects, budget_.limits_.objects)) {
    return budget_.Refuse(has_bytes ? RunLimit::kObjects : RunLimit::kBytes);
  }
  used.bytes += bytes;
  used.objects += objects;
  bytes_ = bytes;
  objects_ = objects;
  period_ = budget_.period_;
  return {};
}

inline RunBudget::Share::~Share() {
  if (bytes_ == 0 && objects_ == 0) return;
  const MutexLock lock(budget_.mutex_);
  if (period_ != budget_.period_) return;  // of another run
  budget_.used_.bytes -= bytes_;
  budget_.used_.objects -= objects_;
}

}  // namespace txfs
