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

/// Questions that wait for people. Thread-safe; its lock is a leaf, and is not
/// held while a thread is told that it may wait.
class ApprovalQueue {
 public:
  struct Limits {
    size_t waiting = 8;        ///< operations at once
    size_t remembered = 1000;  ///< names that were approved
  };
  enum class Answer {
    kYes,
    kNo,
    kLate,         ///< nobody answered in time
    kFull,         ///< as many wait as may
    kEnded,        ///< DenyAll, EndAll or Suspend
    kInterrupted,  ///< who asked is to end
  };
  /// A question, and who waits for its answer.
  struct Item {
    uint64_t id = 0;
    Question question;
    uint32_t uid = 0;
    Timestamp asked;
    std::chrono::milliseconds left{};  ///< until it is too late
    std::vector<ProcessIdentity> processes;
  };

  explicit ApprovalQueue(Limits limits) : limits_(limits) {}
  ApprovalQueue() : ApprovalQueue(Limits{}) {}

  /// Waits until somebody answers, for as long as the question's policy says. A
  /// question that waits already is joined: then one answer is for both. What
  /// was approved to a process is not asked again by it, as long as the rules
  /// are the same.
  Answer Ask(const Caller& caller, const Question& question) EXCLUDES(mutex_);

  /// What waits, the oldest first.
  std::vector<Item> Pending() EXCLUDES(mutex_);
  /// Answers a question for all who wait. False: none has the number.
  bool Reply(uint64_t id, bool yes) EXCLUDES(mutex_);

  /// All that waits is denied.
  void DenyAll() EXCLUDES(mutex_);
  /// DenyAll, and no answer is remembered.
  void EndAll() EXCLUDES(mutex_);
  /// DenyAll, and so is what comes, until as many calls of Resume.
  void Suspend() EXCLUDES(mutex_);
  void Resume() EXCLUDES(mutex_);

 private:
  using Steady = std::chrono::steady_clock;
  /// A thread that waits.
  struct Waiter {
    ProcessIdentity process;
    const LongWait* wait = nullptr;
    bool signalled = false;  ///< by whatever
  };
  struct Entry {
    uint64_t id = 0;
    Question question;
    uint32_t uid = 0;
    Timestamp asked;
    Steady::time_point deadline;
    std::vector<Waiter*> waiters;
    std::optional<Answer> answer;  ///< then it is not in entries_ any more
  };
  using SharedEntry = std::shared_ptr<Entry>;  ///< of all who wait for it
  /// A process, what rules say, the rule, the name, and the program.
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
  std::deque<Grant> oldest_ GUARDED_BY(mutex_);  ///< of the same, in order
};

}  // namespace txfs
