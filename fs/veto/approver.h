#pragma once

#include <chrono>
#include <functional>
#include <span>

#include "fs/posix/filesystem.h"
#include "fs/veto/inquiry.h"
#include "journal/support/result.h"

namespace txfs {

/// Lets the thread of one operation wait for a long time.
class LongWait {
 public:
  virtual ~LongWait() = default;

  /// Announces the wait. False: the thread must not wait, because no other
  /// thread could serve requests. `on_signal` runs when the calling process
  /// gets a signal: on any thread, perhaps before the return. Hold no lock that
  /// it takes.
  virtual bool Begin(std::function<void()> on_signal) = 0;
  /// Whether the process must end, which ends the wait. Other signals (a timer,
  /// SIGCHLD) do not end it. The kernel reports only the first signal, so check
  /// again every kSignalInterval after it.
  [[nodiscard]] virtual bool HasToEnd() const = 0;
  static constexpr std::chrono::milliseconds kSignalInterval{100};
  /// Ends the wait. After the return `on_signal` is not called. Requires that
  /// Begin returned true.
  virtual void End() = 0;
};

/// Answers questions of rules. Thread-safe.
class Approver {
 public:
  virtual ~Approver() = default;

  /// Succeeds if all of `questions`, of one operation of `caller`, are answered
  /// with yes; otherwise a denial (Veto). Blocks until then: hold no lock.
  virtual Status Decide(const Caller& caller,
                        std::span<const Question> questions) = 0;
};

}  // namespace txfs
