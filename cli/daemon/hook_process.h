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

/// The program that answers questions: it is given one line of JSON at a time
/// and answers with one (docs/policy.md). It is started for the first question
/// and stays; when it fails, what waits for it gets an error, and the next
/// question starts it anew. SIGPIPE must be ignored. Thread-safe.
class HookProcess {
 public:
  enum class Verdict { kAllow, kDeny, kAsk };
  struct Reply {
    Verdict verdict = Verdict::kDeny;
    std::string reason;  ///< may be empty
  };
  /// What `line` answers to the question `id`; of what is no answer an error, a
  /// sentence without control characters.
  static Result<Reply> ParseReply(std::string_view line, uint64_t id);

  /// More questions at once are refused, but for those of write-backs.
  static constexpr size_t kMaxWaiting = 8;
  /// Whose a question is: of what the kernel writes back of a file it sends
  /// many parts at once, as many as it likes, and equal questions that wait at
  /// the same time are one. It is the kernel that limits them.
  enum class Origin { kProcess, kWriteBack };

  HookProcess();
  ~HookProcess();
  HookProcess(const HookProcess&) = delete;
  HookProcess& operator=(const HookProcess&) = delete;

  /// Puts `question`, to which "id" is added, to the program that `settings`
  /// name. Errors are sentences: why there is no answer.
  Result<Reply> Ask(const policy::HookSettings& settings, Json question,
                    Origin origin, LongWait* wait) EXCLUDES(mutex_);

  /// What waits gets an error, and so does what comes, until as many calls of
  /// Resume.
  void Suspend() EXCLUDES(mutex_);
  void Resume() EXCLUDES(mutex_);

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Turn {
    const LongWait* wait = nullptr;
    bool signalled = false;  ///< by whatever; under mutex_
    Deadline deadline = Deadline::max();
  };

  /// A question of write-backs, and what the first of them was answered.
  struct Shared {
    Json question;
    std::optional<Result<Reply>> reply;
  };

  Result<Reply> AskAlone(const policy::HookSettings& settings, Json question,
                         LongWait* wait) EXCLUDES(mutex_);
  Result<Reply> AskShared(const policy::HookSettings& settings, Json question,
                          LongWait* wait) EXCLUDES(mutex_);
  /// What `shared` is answered; fails when the wait is over before.
  Result<Reply> AwaitShared(const Shared& shared, LongWait* wait)
      EXCLUDES(mutex_);
  void Interrupt(Turn& turn) EXCLUDES(mutex_);
  /// Until the wait is over, or is to be looked at again; fails when it is
  /// over.
  Result<std::chrono::milliseconds> TimeLeft(const Turn& turn) EXCLUDES(mutex_);
  /// Fails when the wait is over before its answer.
  Status CheckTurnLocked(const Turn& turn) REQUIRES(mutex_);
  Status TakeTurn(Turn& turn) EXCLUDES(mutex_);
  void EndTurn() EXCLUDES(mutex_);
  void Wake() const;
  void ForgetWakes() const;

  // Whoever has the turn has the process.
  Result<Reply> Exchange(const policy::HookSettings& settings, Json question,
                         const Turn& turn);
  Status Start(const policy::HookSettings& settings);
  [[nodiscard]] bool HasEnded() const;
  /// Does not wait for its end: it may stand in the kernel until the operation
  /// that asks is answered.
  void Stop();
  void Reap(int flags);
  /// Puts what it says on stderr into the log, some of it for each question.
  void LogWords();
  Status RefuseEarlyAnswer();
  Status AwaitReady(int fd, short events, const Turn& turn);
  Status WriteLine(std::string_view line, const Turn& turn);
  Result<std::string> ReadLine(const Turn& turn);
  Result<Reply> ReadReply(uint64_t id, const Turn& turn);

  std::optional<policy::HookSettings> running_;  ///< none: nothing runs
  pid_t pid_ = 0;
  std::vector<pid_t> killed_;  ///< and not waited for yet
  UniqueFd in_, out_, err_;    ///< of the process
  size_t logged_ = 0;          ///< bytes of its words, since the last question
  std::string received_;       ///< of the next line
  uint64_t last_id_ = 0;

  UniqueFd wake_;  ///< who has the turn is to look whether it is over
  Mutex mutex_;
  CondVar changed_;
  bool busy_ GUARDED_BY(mutex_) = false;
  size_t waiting_ GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Shared>> shared_ GUARDED_BY(mutex_);
  size_t suspended_ GUARDED_BY(mutex_) = 0;
};

}  // namespace txfs::cli
