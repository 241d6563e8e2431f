#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "cli/protocol/framing.h"
#include "fs/workspace/workspace.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The run of `txfs run` that works in a mount (docs/run.md). If its supervisor
/// dies, the watch ends the sandbox and rolls the run back. Handles the
/// requests of the control protocol for it. Thread-safe.
class RunWatch {
 public:
  /// `unmount`: ends a mount that was made for the run.
  RunWatch(Workspace& workspace, std::function<void()> unmount)
      : workspace_(workspace), unmount_(std::move(unmount)) {}
  /// Leaves a run alone that still works.
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  /// The mount was made for a run of this process, which has not begun: if the
  /// process dies before that, the watch unmounts.
  void Expect(pid_t supervisor) EXCLUDES(mutex_);
  /// Whether the expected run has not begun.
  [[nodiscard]] bool IsExpecting() const EXCLUDES(mutex_);

  /// kBusy while a run works, or is rolled back: for `request` of a process
  /// other than the supervisor that ends or rewinds the transaction.
  Status CheckFree(const Json& request, pid_t peer) EXCLUDES(mutex_);
  /// `request`, with the changes from before the run for a commit of its
  /// supervisor, which must not have these.
  [[nodiscard]] Json WithEarlier(Json request, pid_t peer) EXCLUDES(mutex_);

  /// Whether Handle takes `request`.
  static bool IsAsked(const Json& request);
  /// Sends the reply to `sink`, as Dispatcher::Handle. `peer`: the supervisor.
  Status Handle(const Json& request, const FrameSink& sink, pid_t peer)
      EXCLUDES(mutex_);
  /// Ends the watch: whatever becomes of the supervisor, the changes stay.
  void End() EXCLUDES(mutex_);

 private:
  Result<Frame> Begin(const Json& request, pid_t peer) EXCLUDES(mutex_);
  /// Begin, when the watch for an expected run has ended.
  Result<Frame> BeginWatched(const Json& request, pid_t peer) EXCLUDES(mutex_);
  /// Busy, unless the run of `peer` can begin.
  [[nodiscard]] Status CheckNobodyRuns(pid_t peer) const REQUIRES(mutex_);
  Status Start(const Json& request) EXCLUDES(mutex_);
  Status Settle(const Json& request) EXCLUDES(mutex_);
  /// Ends the watch for the expected run of `peer`; false: there is none.
  bool TakeExpected(pid_t peer) EXCLUDES(mutex_);
  [[nodiscard]] bool IsExpected(pid_t peer) const REQUIRES(mutex_);
  void StartWatch() REQUIRES(mutex_);
  /// Returns its thread, to be joined without the lock.
  [[nodiscard]] std::thread StopWatch() REQUIRES(mutex_);
  /// Waits for the death of the supervisor or for End.
  void Watch(int supervisor, int stop) EXCLUDES(mutex_);
  void RollBack() EXCLUDES(mutex_);
  /// RollBack after it ended the sandbox.
  Status TakeBack(const RunRecord& record, const std::string& savepoint,
                  bool fresh);

  Workspace& workspace_;
  const std::function<void()> unmount_;
  mutable Mutex mutex_;
  bool active_ GUARDED_BY(mutex_) = false;
  pid_t expected_ GUARDED_BY(mutex_) = 0;
  bool owns_mount_ GUARDED_BY(mutex_) = false;
  bool fresh_ GUARDED_BY(mutex_) = false;  ///< a discard rolls back
  std::string savepoint_ GUARDED_BY(mutex_);
  RunRecord record_ GUARDED_BY(mutex_);
  uint64_t begun_ms_ GUARDED_BY(mutex_) = 0;  ///< Clock::Steady
  /// Both sides of the changes from before the run.
  std::vector<std::string> earlier_ GUARDED_BY(mutex_);
  /// The supervisor, until its run has ended or is rolled back; else 0. Not
  /// guarded: Begin waits for the thread that resets it.
  std::atomic<pid_t> holder_ = 0;
  UniqueFd supervisor_ GUARDED_BY(mutex_);
  UniqueFd sandbox_ GUARDED_BY(mutex_);  ///< the process that ends it
  std::vector<std::string> groups_ GUARDED_BY(mutex_);  ///< may be there
  std::string socket_ GUARDED_BY(mutex_);  ///< may be there; "": none
  uint64_t pipe_ GUARDED_BY(mutex_) = 0;   ///< inode; 0: none
  UniqueFd stop_ GUARDED_BY(mutex_);
  std::thread thread_ GUARDED_BY(mutex_);
};

}  // namespace txfs::cli
