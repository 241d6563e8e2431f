#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "fs/posix/filesystem.h"
#include "fs/veto/inquiry.h"
#include "journal/support/result.h"

namespace txfs {

/// How the thread that does an operation may wait for long. Belongs to one
/// operation.
class LongWait {
 public:
  virtual ~LongWait() = default;

  /// The thread is about to wait. False: it must not, for nobody could serve in
  /// its place. `on_signal` is called when the process that asked gets a
  /// signal: on any thread, perhaps at once. No lock may be held that it takes.
  virtual bool Begin(std::function<void()> on_signal) = 0;
  /// Whether the process is to end: then the wait is over. With other signals
  /// (a timer, a child that ended) it goes on. The kernel tells only of the
  /// first one, so after that this is asked every kSignalInterval.
  [[nodiscard]] virtual bool HasToEnd() const = 0;
  static constexpr std::chrono::milliseconds kSignalInterval{100};
  /// It does not wait any more: after this has returned, `on_signal` is not
  /// called. Only after a Begin that returned true.
  virtual void End() = 0;
};

/// Answers questions of rules. Thread-safe.
class Approver {
 public:
  virtual ~Approver() = default;

  /// Succeeds when all of `questions`, which are of one operation of `caller`,
  /// are answered with yes. Else a denial (Veto). Waits for as long as it
  /// takes, so that no lock may be held.
  virtual Status Decide(const Caller& caller,
                        std::span<const Question> questions) = 0;
};

}  // namespace txfs
