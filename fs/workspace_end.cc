#include <algorithm>
#include <utility>

#include "fs/commit_plan.h"
#include "fs/commit_stage.h"
#include "fs/stored_workspace.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr int kCommitLockMs = 30'000;

std::unexpected<Error> StoppedHalfWay(const std::string& path, Error error) {
  error.message = "commit of " + path + " stopped half-way: " + error.message;
  error.hint = "remove the cause, then run `txfs commit` again: it goes on";
  return std::unexpected(std::move(error));
}

}  // namespace

// --- recovery --------------------------------------------------------------

Result<FileLock> StoredWorkspace::LockCommits() {
  if (half_way_) return *std::exchange(half_way_, std::nullopt);
  auto lock = store_->history().LockCommits(kCommitLockMs);
  if (lock || lock.error().kind != ErrorKind::kBusy) return lock;
  return Fail(ErrorKind::kBusy, 0,
              "another commit of " + path_ + " is under way or half done",
              "try again when it has ended; `txfs list` shows whose it is");
}

Status StoredWorkspace::FinishUnfinished() {
  const std::unique_ptr<CommitRecord> record = TRY(committer_.Unfinished());
  if (!record) return {};
  auto done = committer_.CarryOut(*record);
  if (!done) return StoppedHalfWay(path_, std::move(done).error());
  TRY(store_->Retire(record->summary.id));
  return committer_.Finish(*record);
}

Status StoredWorkspace::Recover() {
  if (!store_->history().HasIntent()) return {};
  const MutexLock ending(end_mutex_);
  if (half_way_) return {};  // ours: `txfs commit` goes on with it
  const FileLock lock = TRY(LockCommits());
  return FinishUnfinished();
}

// --- commit ----------------------------------------------------------------

TransactionSummary StoredWorkspace::Ended(TransactionState state,
                                          const std::string& message,
                                          uint64_t changes) const {
  const MutexLock lock(mutex_);
  TransactionSummary ended = summary_;
  ended.state = state;
  ended.message = message;
  ended.changes = changes;
  ended.author = CurrentUser();
  ended.ended = options_.filesystem.clock->Now();
  return ended;
}

/// Up to the point of no return: nothing of the base is touched.
Result<CommitRecord> StoredWorkspace::PrepareCommit(
    OverlayFilesystem::Frozen& frozen, const TransactionSummary& ended,
    CommitReport& report) {
  CommitRecord record{.summary = ended, .vault = ended.id, .steps = {}};
  TRY(frozen.PinOrphans());
  const UniqueFd vault = TRY(committer_.vaults().Open(record.vault, true));
  CommitPlan plan =
      TRY(PlanCommit(frozen, {.clones = VaultFiller::CanClone(vault.get())}));
  record.steps = TRY(VaultFiller(frozen, vault.get()).Fill(plan));
  TRY(committer_.CheckPermitted(record));
  report.withheld = std::move(plan.withheld);
  return record;
}

/// From the moment that the intent may be written, mutations are refused: what
/// they change would not be in the plan.
Status StoredWorkspace::PassPointOfNoReturn(OverlayFilesystem::Frozen& frozen,
                                            const CommitRecord& record) {
  frozen.SetHalted(true);
  auto passed = committer_.PassPointOfNoReturn(record);
  if (!passed) {
    frozen.SetHalted(store_->history().HasIntent());
    return passed;
  }
  const MutexLock lock(mutex_);
  summary_.state = TransactionState::kCommitting;
  // For `txfs list` only: the intent is what counts.
  std::ignore = store_->UpdateSummary(summary_);
  return {};
}

/// All of a commit but the talk: up to the point of no return nothing is
/// touched, after it there is only forward.
Result<CommitReport> StoredWorkspace::CommitFrozen(
    OverlayFilesystem::Frozen& frozen, const std::string& message,
    uint64_t changes, StaleCaches& stale, std::shared_ptr<Journal>& old) {
  FileLock lock = TRY(LockCommits());
  std::unique_ptr<CommitRecord> record = TRY(committer_.Unfinished());
  const std::string id = transaction_id();
  if (record && record->summary.id != id) {
    TRY(FinishUnfinished());
    record.reset();
  }
  TransactionSummary ended =
      Ended(TransactionState::kCommitted, message, changes);
  CommitReport report{.id = id, .changes = changes};
  if (!record) {
    TRY(frozen.journal.Drain());
    report.conflicts = TRY(FindConflicts(frozen));
    if (!report.conflicts.empty()) return report;
  }
  PreparedTransaction prepared = TRY(PrepareNext(ended.name, frozen.journal));
  auto done = [&]() -> Status {
    if (!record) {
      CommitRecord made = TRY(PrepareCommit(frozen, ended, report));
      record = std::make_unique<CommitRecord>(std::move(made));
      TRY(PassPointOfNoReturn(frozen, *record));
    }
    auto carried = committer_.CarryOut(*record);
    if (!carried) return StoppedHalfWay(path_, std::move(carried).error());
    return {};
  }();
  if (!done) {
    store_->Cancel(std::move(prepared));
    if (store_->history().HasIntent()) half_way_.emplace(std::move(lock));
    return std::unexpected(std::move(done).error());
  }
  TRY(SwitchTo(frozen, record->summary, std::move(prepared), true, stale, old));
  TRY(committer_.Finish(*record));
  return report;
}

Status StoredWorkspace::SwitchTo(OverlayFilesystem::Frozen& frozen,
                                 const TransactionSummary& ended,
                                 PreparedTransaction prepared, bool committed,
                                 StaleCaches& stale,
                                 std::shared_ptr<Journal>& old) {
  const Timestamp now = options_.filesystem.clock->Now();
  OpenTransaction next = TRY(store_->Succeed(ended.id, std::move(prepared)));
  frozen.journal.Forget();
  old = std::move(next.journal);
  stale = frozen.Reset(old, committed);
  const MutexLock lock(mutex_);
  follows_ = true;
  summary_ =
      TransactionSummary{.id = next.id, .name = ended.name, .created = now};
  transaction_lock_.emplace(std::move(next.lock));
  return {};
}

Result<CommitReport> StoredWorkspace::Commit(const std::string& message) {
  const MutexLock ending(end_mutex_);
  const uint64_t changes = TRY(Changes(false, {})).size();
  StaleCaches stale;
  std::shared_ptr<Journal> old;
  auto report = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen)
          NO_THREAD_SAFETY_ANALYSIS -> Result<CommitReport> {
            return CommitFrozen(frozen, message, changes, stale, old);
          });
  if (!report || !report->conflicts.empty()) return report;
  old.reset();
  Tell(stale);
  Collect();
  return report;
}

Status StoredWorkspace::CheckNotHalfWay() {
  if (!half_way_) return {};
  return Fail(ErrorKind::kBusy, 0, "a commit of " + path_ + " stopped half-way",
              "run `txfs commit` again: it goes on");
}

// --- discard ---------------------------------------------------------------

Result<std::string> StoredWorkspace::Discard() {
  const MutexLock ending(end_mutex_);
  TRY(CheckNotHalfWay());
  const uint64_t changes = TRY(Changes(false, {})).size();
  const TransactionSummary ended =
      Ended(TransactionState::kDiscarded, "", changes);
  PreparedTransaction prepared =
      TRY(PrepareNext(ended.name, *filesystem_->journal()));
  StaleCaches stale;
  std::shared_ptr<Journal> old;
  auto switched = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen)
          NO_THREAD_SAFETY_ANALYSIS -> Status {
            TRY(store_->history().Write(ended));
            return SwitchTo(frozen, ended, std::move(prepared), false, stale,
                            old);
          });
  TRY(std::move(switched));
  old.reset();
  Tell(stale);
  Collect();
  return ended.id;
}

/// On a full disk the open transaction's reserve makes room for the next one.
Result<PreparedTransaction> StoredWorkspace::PrepareNext(
    const std::string& name, Journal& journal) {
  const auto prepare = [&] {
    return store_->Prepare(name, options_.filesystem.clock->Now(),
                           options_.journal);
  };
  auto prepared = prepare();
  const bool full = !prepared && (prepared.error().code == ENOSPC ||
                                  prepared.error().code == EDQUOT);
  if (full && journal.GiveUpReserve()) prepared = prepare();
  return prepared;
}

void StoredWorkspace::Tell(const StaleCaches& stale) {
  std::function<void(const StaleCaches&)> listener;
  {
    const MutexLock lock(mutex_);
    listener = listener_;
  }
  if (listener) listener(stale);
}

// --- undo ------------------------------------------------------------------

Result<UndoReport> StoredWorkspace::Undo(const std::string& id) {
  const MutexLock ending(end_mutex_);
  TRY(CheckNotHalfWay());
  FileLock lock = TRY(LockCommits());
  TRY(FinishUnfinished());
  UndoReport report;
  const CommitRecord record =
      TRY(committer_.PrepareUndo(id, options_.filesystem.clock->Now(), report));
  if (!report.conflicts.empty()) return report;
  TRY(committer_.CheckPermitted(record));
  auto undone = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen)
          NO_THREAD_SAFETY_ANALYSIS -> Status {
            TRY(frozen.PinOrphans());
            TRY(committer_.PassPointOfNoReturn(record));
            auto done = committer_.CarryOut(record);
            if (!done) return StoppedHalfWay(path_, std::move(done).error());
            return committer_.Finish(record);
          });
  TRY(std::move(undone));
  RefreshTree();
  return report;
}

// --- afterwards ------------------------------------------------------------

Status StoredWorkspace::Refresh() {
  const MutexLock ending(end_mutex_);
  RefreshTree();
  return {};
}

void StoredWorkspace::RefreshTree() {
  Tell(filesystem_->WhileFrozen(
      [](OverlayFilesystem::Frozen& frozen) { return frozen.Refresh(); }));
}

void StoredWorkspace::Collect() {
  StopCollecting();
  // What fails is tried again at the next end of a transaction.
  collecting_ = std::thread([this] {
    std::ignore = store_->EmptyTrash();
    const auto lock = store_->history().LockCommits(0);
    if (!lock) return;
    Committer committer(*store_, base_);
    std::ignore = committer.CollectGarbage(options_.retention);
  });
}

void StoredWorkspace::StopCollecting() {
  if (collecting_.joinable()) collecting_.join();
}

}  // namespace txfs
