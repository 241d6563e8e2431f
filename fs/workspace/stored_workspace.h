#pragma once

#include <fcntl.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/commit/committer.h"
#include "fs/diff/past.h"
#include "fs/overlay/base_follower.h"
#include "fs/overlay/handover.h"
#include "fs/overlay/overlay.h"
#include "fs/planning/revert.h"
#include "fs/planning/selection.h"
#include "fs/workspace/workspace.h"
#include "journal/store.h"
#include "journal/support/file.h"
#include "journal/support/mutex.h"

namespace txfs {

struct PartCommit;  // fs/planning/settle.h

/// A commit between its point of no return and its end.
struct HalfWayCommit {
  std::optional<FileLock> lock;  ///< the commit lock, if it stopped there
  bool settled = false;          ///< of a part: the tree is already as after it
  std::vector<std::string> savepoints = {};  ///< of a part: those that it ended
};

/// The Workspace over a store on disk. Locks: docs/locking.md.
class StoredWorkspace final : public Workspace {
 public:
  StoredWorkspace(const WorkspaceOptions& options, std::string path,
                  UniqueFd base, std::unique_ptr<Store> store);
  ~StoredWorkspace() override { StopCollecting(); }

  Status Start();
  /// As Workspace::DiscardUnread; instead of Start.
  Result<DiscardReport> DiscardUnread();

  Filesystem& filesystem() override { return *filesystem_; }
  Store& store() override { return *store_; }
  [[nodiscard]] std::string transaction_id() const override {
    const MutexLock lock(mutex_);
    return summary_.id;
  }
  [[nodiscard]] const std::string& path() const override { return path_; }

  [[nodiscard]] Timestamp created() const override {
    const MutexLock lock(mutex_);
    return summary_.created;
  }
  Result<WorkspaceStatus> GetStatus() override;
  Result<std::vector<Conflict>> FindConflicts() override;
  Result<FullStatus> GetFullStatus() override;
  Status VisitChanges(bool expand, const std::vector<std::string>& below,
                      const ChangeVisitor& visit) override;
  Result<std::vector<NetChange>> ChangesSince(
      const std::string& savepoint, const std::string& until,
      const std::vector<std::string>& below) override;
  Result<size_t> ReadPast(const std::string& savepoint, Ino ino,
                          uint64_t offset, MutableByteSpan out) override;
  Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                          MutableByteSpan out) override {
    return filesystem_->ReadBase(base_path, offset, out);
  }
  using Workspace::Commit;
  Result<CommitReport> Commit(const CommitOptions& options,
                              const CommitProgress& progress) override;
  Result<PlanReport> PlanOnly(const PlanRequest& request) override;
  Result<DiscardReport> Discard() override;
  Result<PartDiscard> DiscardPart(
      const std::vector<std::string>& paths) override;
  Result<Savepoint> MakeSavepoint(const std::string& name) override;
  Result<RollbackReport> Rollback(const std::string& name) override;
  Result<uint64_t> MarkCall(const CallMark& mark) override;
  Result<std::vector<Call>> Calls() override;
  Result<CallSpan> FindSpan(const std::string& wanted) override;
  std::vector<Savepoint> CallMarks() override;
  Result<RevertReport> RevertCall(const std::string& wanted) override;
  Result<UndoReport> Undo(const std::string& wanted) override;
  Result<std::string> Recover() override;
  [[nodiscard]] const Retention& retention() const override {
    return options_.retention;
  }
  Result<CommitView> Show(const std::string& wanted) override {
    return ViewCommit(*store_, base_, wanted);
  }
  Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                           MutableByteSpan out) override {
    return Vaults(base_, store_->dir()).Read(path, offset, out);
  }
  Result<GcReport> CollectGarbage(const Retention& retention) override;
  void BeginRun(const RunRecord& run) override;
  void SettleRun(const RunRecord& run) override;
  void EndRun(const RunRecord& run) override;
  std::vector<RunRecord> Runs() override {
    const MutexLock lock(mutex_);
    return summary_.runs;
  }
  void LimitRun(const RunLimits& limits,
                std::function<void(RunLimit)> on_exceeded) override {
    filesystem_->budget().Set(limits, std::move(on_exceeded));
  }
  Status ReadLog(Lsn first,
                 const std::function<bool(const LogEntry&)>& visit) override {
    return filesystem_->journal()->ReadLog(first, visit);
  }
  Result<Denials> ReadDenials() override {
    return filesystem_->journal()->ReadDenials();
  }
  std::string DenialsVersion() override {
    // Another transaction has another journal, which counts from 0.
    return transaction_id() + " " +
           std::to_string(filesystem_->journal()->denied());
  }
  std::vector<std::string> TakeMoved() override {
    const MutexLock lock(mutex_);
    return std::exchange(moved_, {});
  }
  void OnStaleCaches(
      std::function<void(const StaleCaches&)> listener) override {
    const MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  void OnPathEvents(
      std::function<void(const std::vector<PathEvent>&)> listener) override {
    const MutexLock lock(mutex_);
    path_listener_ = std::move(listener);
  }
  Status Refresh() override;
  Status CatchUp() override;
  void UsePolicy(std::shared_ptr<const policy::Policy> policy) override {
    filesystem_->UsePolicy(std::move(policy));
  }
  Result<UniqueFd> OpenBase() override {
    return OpenAt(base_.root(), ".", O_RDONLY | O_DIRECTORY);
  }
  Status KeepFollowed() override;
  Status Close() override;
  /// How many ends of transactions are remembered.
  [[nodiscard]] size_t seen_ends() const {
    const MutexLock lock(mutex_);
    return seen_.size();
  }
  /// Whether the tree of a savepoint is cached.
  [[nodiscard]] bool has_past() {
    const MutexLock lock(past_mutex_);
    return !pasts_.empty();
  }

 private:
  // Opening.
  Result<std::optional<std::string>> FindOpen();
  Result<OpenTransaction> BeginOrResume();
  Status Adopt(OpenTransaction transaction);

  // Questions.
  /// All of the status but the number of changes.
  Result<WorkspaceStatus> StatusWithoutChanges();
  /// The number of net changes. Calls `look`, unless it is empty, with
  /// everything frozen and PlainFiles::others.
  Result<uint64_t> CountNetChanges(
      const std::function<void(Frozen&, const std::vector<Inode*>&)>& look);

  // Ending. workspace_end.cc
  /// Takes the commit lock, or the one held by a commit that stopped half-way.
  Result<FileLock> LockCommits() REQUIRES(end_mutex_);
  Status RecoverWithin(int timeout_ms);
  /// Ids, in order, of commits since the mount last read the base.
  std::vector<std::string> FindNews() EXCLUDES(mutex_);
  void MarkSeen(const std::vector<std::string>& ids) EXCLUDES(mutex_);
  /// Removes ends that the history no longer has from seen_.
  void ForgetDropped() EXCLUDES(mutex_);
  /// Finishes the commit of a process that died, except our own: `txfs commit`
  /// continues that one.
  Status FinishOthers(int timeout_ms) REQUIRES(end_mutex_);
  /// As FinishOthers, with the commit lock held. Refreshes the tree.
  Status FinishUnfinished() REQUIRES(end_mutex_);
  /// Records a name of files whose known names are gone, so that their changes
  /// count.
  void NoteHeldNames() REQUIRES(end_mutex_);
  /// kBusy if a commit or discard stopped half-way: it must be continued first.
  Status RefuseHalfWay() REQUIRES(end_mutex_);
  [[nodiscard]] bool IsHalfWay() REQUIRES(end_mutex_) {
    return half_way_.has_value();
  }
  /// Our commit is past its point of no return. Mutations are refused until it
  /// is done: its plan would not have their changes.
  void SetHalfWay(Frozen& frozen, bool half_way) REQUIRES(end_mutex_);
  // Committing. workspace_commit.cc
  /// Parts of an ended transaction, to be destroyed after WhileFrozen.
  struct Remains {
    std::shared_ptr<Journal> journal;
    std::shared_ptr<Preimages> preimages;
    Tree::Dropped dropped;
  };
  /// One call of Commit.
  struct Attempt {
    const CommitOptions& options;
    const CommitProgress& progress;
    std::vector<NetChange> changes;  ///< of the whole transaction
    std::function<void()> passed;    ///< called at the point of no return
    std::string vault;  ///< the vault made by this call; empty: none
    CommitReport report;
    StaleCaches stale;
    Remains old;
  };
  Result<CommitReport> CommitOrGoOn(const CommitOptions& options,
                                    const CommitProgress& progress)
      REQUIRES(end_mutex_);
  /// Brings the tree up to date with the base, and tells the kernel. Journaled.
  void FollowBase();
  void PreparePreimages();
  Status CommitFrozen(Frozen& frozen, Attempt& attempt) REQUIRES(end_mutex_);
  Result<CommitRecord> PrepareCommit(Frozen& frozen, const Selection* selection,
                                     Attempt& attempt) REQUIRES(end_mutex_);
  Status PrepareSettlement(Frozen& frozen, const Selection& selection,
                           const PartCommit& commit, CommitRecord& record);
  Status PassPointOfNoReturn(Frozen& frozen, const CommitRecord& record,
                             Attempt& attempt) REQUIRES(end_mutex_);
  Status FinishWhole(Frozen& frozen, const CommitRecord& record,
                     Attempt& attempt) REQUIRES(end_mutex_);
  Status FinishPart(Frozen& frozen, const CommitRecord& record,
                    Attempt& attempt) REQUIRES(end_mutex_);
  Status SettlePart(Frozen& frozen, const CommitRecord& record,
                    Attempt& attempt) REQUIRES(end_mutex_);
  /// The record of the end; `journal` is that of the open transaction.
  [[nodiscard]] TransactionSummary Ended(TransactionState state,
                                         const std::string& message,
                                         uint64_t changes,
                                         Journal& journal) const
      REQUIRES(end_mutex_);
  /// After the end of the transaction: `next`, with the same name, becomes the
  /// open one.
  void GoOnWith(Frozen& frozen, OpenTransaction next, Remains& old)
      REQUIRES(end_mutex_);
  /// As GoOnWith, without an open transaction until the disk has room for one.
  void GoOnWithout(Frozen& frozen, std::shared_ptr<Journal> next, Remains& old)
      REQUIRES(end_mutex_);
  void Replace(Frozen& frozen, std::shared_ptr<Journal> next,
               TransactionSummary summary, Remains& old) REQUIRES(end_mutex_);
  /// Ends a discarded transaction on a full disk.
  Status EndOnFullDisk(const TransactionSummary& ended, Remains& old)
      REQUIRES(end_mutex_);
  /// Begins the transaction after EndOnFullDisk. Called with locks of the
  /// filesystem held.
  Result<std::unique_ptr<Journal>> BeginDeferred() EXCLUDES(mutex_);
  /// Ends the transaction on disk. The mount already shows the base.
  Status EndDiscarded(const TransactionSummary& ended, StaleCaches& taken_back,
                      Remains& old) REQUIRES(end_mutex_);
  Result<OpenTransaction> BeginNext(const TransactionSummary& ended)
      REQUIRES(end_mutex_);
  Result<StaleCaches> DiscardFrozen(Frozen& frozen,
                                    const std::vector<std::string>& paths,
                                    const std::vector<NetChange>& changes,
                                    PartDiscard& discarded)
      REQUIRES(end_mutex_);
  /// This process as the caller of operations, for the log.
  static Caller Ourselves();
  /// The number of `changes` at `paths`.
  static uint64_t CountChanges(const std::vector<NetChange>& changes,
                               const std::set<std::string>& paths);
  /// Builds the successor of the transaction `ended`, whose journal is
  /// `journal`.
  Result<PreparedTransaction> PrepareNext(const TransactionSummary& ended,
                                          Journal& journal);
  /// Invalidates `stale` in the kernel, including the names of lookups in
  /// flight.
  void Tell(StaleCaches stale);
  void TellKernel(const StaleCaches& stale);
  /// Reports the changes that made `stale` stale to processes that watch them.
  void TellWatchers(const StaleCaches& stale) REQUIRES(end_mutex_);
  /// Returns the stale caches, of which the kernel was told.
  StaleCaches LookAgain(std::span<const Ino> inos) REQUIRES(end_mutex_);
  /// Reads the base again after a change that was not our commit.
  void RefreshTree() REQUIRES(end_mutex_);
  // workspace_runs.cc
  /// The runs are those of a daemon that has died.
  void InterruptRuns() EXCLUDES(mutex_);
  /// Puts the run that settles into `ended`, the record of an end.
  void AddSettledRun(TransactionSummary& ended) const REQUIRES(mutex_);
  /// Drops the others, which had no part in the commit of `part`.
  void KeepSettledRun(TransactionSummary& part) const EXCLUDES(mutex_);
  /// Takes the runs that go on out of those of a transaction that has ended.
  std::vector<RunRecord> RunsThatGoOn() REQUIRES(mutex_);
  void WriteRuns() REQUIRES(mutex_);
  // workspace_savepoints.cc
  Result<std::shared_ptr<Past>> PastAt(const std::string& name);
  /// The cached trees of an ended transaction, to be destroyed without the
  /// lock.
  std::vector<std::shared_ptr<Past>> TakePasts() EXCLUDES(past_mutex_);
  // workspace_calls.cc
  /// A call whose end may be marked.
  struct RunningCall {
    uint64_t number;
    Lsn begin;
    std::string host, session, call;
  };
  /// Calls since the transaction was opened, and the last number.
  struct CallState {
    std::weak_ptr<Journal> journal;
    uint64_t last = 0;
    std::deque<RunningCall> running;
  };
  CallState& CallsOf(const std::shared_ptr<Journal>& journal)
      REQUIRES(end_mutex_);
  Result<uint64_t> MarkEnd(CallState& calls, const CallMark& mark)
      REQUIRES(end_mutex_);
  /// The newest call has ended: a rollback changes what it changes next.
  void EndNewestCall(const Savepoint& rolled_back) REQUIRES(end_mutex_);
  Result<CallSpan> SpanOfCall(Journal& journal, const std::string& wanted);
  Result<StaleCaches> RevertFrozen(Frozen& frozen, const CallSpan& span,
                                   RevertReport& report,
                                   std::vector<Dependence>& built_on)
      REQUIRES(end_mutex_);
  /// What comes after a change of the tree that no process made.
  void TellAll(const StaleCaches& stale) REQUIRES(end_mutex_);
  /// Empties the trash, frees history and memory, and computes sums, in the
  /// background.
  void Collect() REQUIRES(end_mutex_);
  void StopCollecting() REQUIRES(end_mutex_);
  [[nodiscard]] bool IsUnused(const Journal& journal) const
      REQUIRES(end_mutex_);

  const WorkspaceOptions options_;
  const std::string path_;
  const BaseDirectory base_;
  std::unique_ptr<Store> store_;
  Committer committer_ GUARDED_BY(end_mutex_);
  std::unique_ptr<OverlayFilesystem> filesystem_;
  Mutex end_mutex_;  ///< one commit, discard or undo at a time; before mutex_
  std::optional<HalfWayCommit> half_way_ GUARDED_BY(end_mutex_);
  /// The mount shows the base, but whether the discard is on disk is unknown.
  bool discard_half_way_ GUARDED_BY(end_mutex_) = false;
  mutable Mutex mutex_;
  TransactionSummary summary_ GUARDED_BY(mutex_);
  std::optional<RunRecord> settling_ GUARDED_BY(mutex_);  ///< SettleRun
  std::optional<FileLock> transaction_lock_ GUARDED_BY(mutex_);
  std::function<void(const StaleCaches&)> listener_ GUARDED_BY(mutex_);
  std::function<void(const std::vector<PathEvent>&)> path_listener_
      GUARDED_BY(mutex_);
  std::vector<std::string> moved_ GUARDED_BY(mutex_);  ///< for TakeMoved
  std::thread collecting_ GUARDED_BY(end_mutex_);
  std::atomic<bool> stops_ = false;  ///< collecting_ must stop
  Mutex past_mutex_;                 ///< before the filesystem's locks
  /// The last ones that were asked for; shared with readers.
  std::vector<std::shared_ptr<Past>> pasts_ GUARDED_BY(past_mutex_);
  CallState calls_ GUARDED_BY(end_mutex_);
  std::string recovered_ GUARDED_BY(mutex_);  ///< for Recover
  /// Ended transactions whose effect on the base the mount shows, or that had
  /// none.
  std::set<std::string> seen_ GUARDED_BY(mutex_);
  bool follows_ GUARDED_BY(end_mutex_) = false;  ///< succeeded another one
};

}  // namespace txfs
