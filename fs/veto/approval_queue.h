#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fs/host/process_identity.h"
#include "fs/veto/approver.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// Questions that wait for an answer of a user. Thread-safe; its lock is a leaf
/// and is not held during LongWait::Begin.
class ApprovalQueue {
 public:
  struct Limits {
    size_t waiting = 8;        ///< operations at the same time
    size_t remembered = 1000;  ///< approved names
  };
  enum class Answer {
    kYes,
    kNo,
    kLate,         ///< the deadline passed
    kFull,         ///< Limits::waiting is reached, or LongWait::Begin failed
    kEnded,        ///< DenyAll, EndAll or Suspend
    kInterrupted,  ///< the asking process must end
  };
  /// A question and the processes that wait for its answer.
  struct Item {
    uint64_t id = 0;
    Question question;
    uint32_t uid = 0;
    Timestamp asked;
    std::chrono::milliseconds left{};  ///< time until the deadline
    std::vector<ProcessIdentity> processes;
  };

  explicit ApprovalQueue(Limits limits) : limits_(limits) {}
  ApprovalQueue() : ApprovalQueue(Limits{}) {}

  /// Waits for an answer until the deadline of the question's policy. An
  /// identical waiting question is joined, so that one answer serves both. An
  /// approval is remembered for the process while the rules stay the same.
  Answer Ask(const Caller& caller, const Question& question) EXCLUDES(mutex_);

  /// The waiting questions, oldest first.
  std::vector<Item> Pending() EXCLUDES(mutex_);
  /// Answers a question for all waiting operations. False: no question has this
  /// ID.
  bool Reply(uint64_t id, bool yes) EXCLUDES(mutex_);

  /// Ends all waiting questions with kEnded.
  void DenyAll() EXCLUDES(mutex_);
  /// DenyAll; also forgets all approvals.
  void EndAll() EXCLUDES(mutex_);
  /// DenyAll, also for new questions until as many calls of Resume.
  void Suspend() EXCLUDES(mutex_);
  void Resume() EXCLUDES(mutex_);

 private:
  using Steady = std::chrono::steady_clock;
  /// A waiting thread.
  struct Waiter {
    ProcessIdentity process;
    const LongWait* wait = nullptr;
    bool signalled = false;  ///< the process got some signal
  };
  struct Entry {
    uint64_t id = 0;
    Question question;
    uint32_t uid = 0;
    Timestamp asked;
    Steady::time_point deadline;
    std::vector<Waiter*> waiters;
    std::optional<Answer> answer;  ///< if set, entries_ lacks the entry
  };
  using SharedEntry = std::shared_ptr<Entry>;  ///< one owner per thread
  /// Process, policy hash, rule, effect, path and program.
  using Grant = std::tuple<ProcessIdentity, uint64_t, std::string, int,
                           std::string, std::string>;

  static std::vector<Grant> GrantsOf(const ProcessIdentity& process,
                                     const Question& question);
  bool IsRemembered(const std::vector<Grant>& grants) const REQUIRES(mutex_);
  void Remember(const std::vector<Grant>& grants) REQUIRES(mutex_);
  SharedEntry Join(const Caller& caller, const Question& question,
                   Waiter& waiter) REQUIRES(mutex_);
  void Await(Entry& entry, const Waiter& waiter) REQUIRES(mutex_);
  Answer Leave(Entry& entry, const Waiter& waiter) REQUIRES(mutex_);
  void Settle(Entry& entry, Answer answer) REQUIRES(mutex_);
  void Interrupt(Waiter& waiter) EXCLUDES(mutex_);
  void DenyAllLocked() REQUIRES(mutex_);

  const Limits limits_;
  Mutex mutex_;
  CondVar changed_;
  std::map<uint64_t, SharedEntry> entries_ GUARDED_BY(mutex_);
  uint64_t next_id_ GUARDED_BY(mutex_) = 1;
  size_t waiting_ GUARDED_BY(mutex_) = 0;
  size_t pauses_ GUARDED_BY(mutex_) = 0;
  std::set<Grant> remembered_ GUARDED_BY(mutex_);
  std::deque<Grant> oldest_ GUARDED_BY(mutex_);  ///< by age, oldest first
};

}  // namespace txfs
