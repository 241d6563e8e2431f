#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/json.h"
#include "fs/veto/approver.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"
#include "policy/settings.h"

namespace txfs::cli {

/// The program that answers questions: it reads one line of JSON at a time and
/// answers with one line (docs/policy.md). It is started for the first question
/// and keeps running. If it fails, the waiting question gets an error, and the
/// next question starts it again. SIGPIPE must be ignored. Thread-safe.
class HookProcess {
 public:
  enum class Verdict { kAllow, kDeny, kAsk };
  struct Reply {
    Verdict verdict = Verdict::kDeny;
    std::string reason;  ///< may be empty
  };
  /// Parses `line` as the answer to the question `id`. The error is a sentence
  /// without control characters.
  static Result<Reply> ParseReply(std::string_view line, uint64_t id);

  /// Most waiting questions, without those of write-backs. More are refused.
  static constexpr size_t kMaxWaiting = 8;
  /// The origin of a question. For a write-back, the kernel may send any number
  /// of parts of one file at once; equal questions that wait at the same time
  /// are asked once. Only the kernel limits their number.
  enum class Origin { kProcess, kWriteBack };

  HookProcess();
  ~HookProcess();
  HookProcess(const HookProcess&) = delete;
  HookProcess& operator=(const HookProcess&) = delete;

  /// Asks the program of `settings` the question `question`, to which "id" is
  /// added. Errors are sentences that say why there is no answer.
  Result<Reply> Ask(const policy::HookSettings& settings, Json question,
                    Origin origin, LongWait* wait) EXCLUDES(mutex_);

  /// Fails all waiting and new questions, until Resume was called as often as
  /// Suspend.
  void Suspend() EXCLUDES(mutex_);
  void Resume() EXCLUDES(mutex_);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Turn {
    const LongWait* wait = nullptr;
    bool signalled = false;  ///< set on a signal; under mutex_
    Deadline deadline = Deadline::max();
  };

  /// A question of write-backs, and the answer to the first of them.
  struct Shared {
    Json question;
    std::optional<Result<Reply>> reply;
  };

  Result<Reply> AskAlone(const policy::HookSettings& settings, Json question,
                         LongWait* wait) EXCLUDES(mutex_);
  Result<Reply> AskShared(const policy::HookSettings& settings, Json question,
                          LongWait* wait) EXCLUDES(mutex_);
  /// The answer to `shared`; fails if the wait ends before.
  Result<Reply> AwaitShared(const Shared& shared, LongWait* wait)
      EXCLUDES(mutex_);
  void Interrupt(Turn& turn) EXCLUDES(mutex_);
  /// Time until the wait ends or must be checked again; fails if it has ended.
  Result<std::chrono::milliseconds> TimeLeft(const Turn& turn) EXCLUDES(mutex_);
  /// Fails if the wait has ended.
  Status CheckTurnLocked(const Turn& turn) REQUIRES(mutex_);
  Status TakeTurn(Turn& turn) EXCLUDES(mutex_);
  void EndTurn() EXCLUDES(mutex_);
  void Wake() const;
  void ForgetWakes() const;

  // Only the thread that has the turn uses the process.
  Result<Reply> Exchange(const policy::HookSettings& settings, Json question,
                         const Turn& turn);
  Status Start(const policy::HookSettings& settings);
  [[nodiscard]] bool HasEnded() const;
  /// Kills the process, but does not wait for its end: it may be blocked in the
  /// kernel until the asking operation is answered.
  void Stop();
  void Reap(int flags);
  /// Logs its output on stderr, a limited amount for each question.
  void LogWords();
  Status RefuseEarlyAnswer();
  Status AwaitReady(int fd, short events, const Turn& turn);
  Status WriteLine(std::string_view line, const Turn& turn);
  Result<std::string> ReadLine(const Turn& turn);
  Result<Reply> ReadReply(uint64_t id, const Turn& turn);

  std::optional<policy::HookSettings> running_;  ///< none: nothing runs
  pid_t pid_ = 0;
  std::vector<pid_t> killed_;  ///< not yet reaped
  UniqueFd in_, out_, err_;    ///< of the process
  size_t logged_ = 0;          ///< bytes of its stderr since the last question
  std::string received_;       ///< of the next line
  uint64_t last_id_ = 0;

  UniqueFd wake_;  ///< wakes the thread that has the turn, to check whether its
                   ///< wait has ended
  Mutex mutex_;
  CondVar changed_;
  bool busy_ GUARDED_BY(mutex_) = false;
  size_t waiting_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Shared>> shared_ GUARDED_BY(mutex_);
  size_t suspended_ GUARDED_BY(mutex_) = 0;
};

}  // namespace txfs::cli
