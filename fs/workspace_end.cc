#include <algorithm>
#include <utility>

#include "fs/commit_plan.h"
#include "fs/commit_stage.h"
#include "fs/commit_words.h"
#include "fs/stored_workspace.h"
#include "journal/base/file.h"

namespace txfs {
// --- recovery --------------------------------------------------------------

Result<FileLock> StoredWorkspace::LockCommits() {
  if (half_way_) return *std::exchange(half_way_, std::nullopt);
  return committer_.Lock(kCommitLockMs);
}

Status StoredWorkspace::RecoverWithin(int timeout_ms) {
  if (!store_->history().HasIntent()) return {};
  const MutexLock ending(end_mutex_);
  return FinishOthers(timeout_ms);
}

Status StoredWorkspace::FinishOthers(int timeout_ms) {
  if (IsHalfWay() || !store_->history().HasIntent()) return {};
  const FileLock lock = TRY(committer_.Lock(timeout_ms));
  return FinishUnfinished();
}

Result<bool> StoredWorkspace::Recover() {
  TRY(RecoverWithin(0));
  return recovered_.exchange(false);
}

Status StoredWorkspace::FinishUnfinished() {
  if (!TRY(committer_.FinishUnfinished())) return {};
  recovered_ = true;
  if (filesystem_) RefreshTree();
  return {};
}

Error StoredWorkspace::HalfWay() const {
  return {.code = 0,
          .message = "a commit of " + path_ + " stopped half-way",
          .hint = "run `txfs commit` again: it goes on",
          .kind = ErrorKind::kBusy};
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
    const CommitProgress& progress, CommitReport& report) {
  CommitRecord record{.summary = ended, .vault = ended.id, .steps = {}};
  TRY(frozen.PinOrphans());
  Vault vault = TRY(committer_.vaults().Make(record.vault));
  CommitPlan plan =
      TRY(PlanCommit(frozen, {.clones = VaultFiller::CanClone(vault)}));
  TRY(committer_.vaults().AddParts(record.vault, plan.mounts, vault));
  const size_t filled = plan.staged.size() + plan.deltas.size();
  const size_t all = filled + plan.steps.size();
  const auto fill_progress = [&](size_t done) {
    if (progress) progress(done, all);
  };
  VaultFiller filler(frozen, vault, fill_progress);
  record.steps = TRY(filler.Fill(plan));
  if (progress) {
    committer_.OnProgress([progress, filled, all](size_t done, size_t) {
      progress(filled + done, all);
    });
  }
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
    const CommitProgress& progress, uint64_t changes, StaleCaches& stale,
    std::shared_ptr<Journal>& old) {
  FileLock lock = TRY(LockCommits());
  std::unique_ptr<CommitRecord> record = TRY(committer_.Unfinished());
  const std::string id = transaction_id();
  if (record && record->summary.id != id) {
    TRY(committer_.FinishUnfinished());
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
  auto done = [&]() NO_THREAD_SAFETY_ANALYSIS -> Status {
    if (!record) {
      CommitRecord made = TRY(PrepareCommit(frozen, ended, progress, report));
      record = std::make_unique<CommitRecord>(std::move(made));
      TRY(PassPointOfNoReturn(frozen, *record));
    }
    return committer_.CarryOut(*record);
  }();
  if (!done) {
    store_->Cancel(std::move(prepared));
    if (store_->history().HasIntent()) {
      half_way_.emplace(std::move(lock));
    } else {
      // What it took may be what others lack now.
      std::ignore = committer_.vaults().Remove(id);
    }
    return std::unexpected(std::move(done).error());
  }
  // From here on they are files of the base and of nobody else.
  frozen.journal.GiveUpLinked();
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

Result<CommitReport> StoredWorkspace::Commit(const std::string& message,
                                             const CommitProgress& progress) {
  const MutexLock ending(end_mutex_);
  // Before everything freezes, for it may take a while.
  TRY(FinishOthers(kCommitLockMs));
  const uint64_t changes = TRY(Changes(false, {})).size();
  StaleCaches stale;
  std::shared_ptr<Journal> old;
  auto report = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen)
          NO_THREAD_SAFETY_ANALYSIS -> Result<CommitReport> {
            return CommitFrozen(frozen, message, progress, changes, stale, old);
          });
  committer_.OnProgress({});
  if (!report || !report->conflicts.empty()) return report;
  old.reset();
  Tell(stale);
  Collect();
  return report;
}

Result<PlanReport> StoredWorkspace::PlanOnly() {
  const MutexLock ending(end_mutex_);
  if (IsHalfWay()) return std::unexpected(HalfWay());
  PlanReport report;
  report.id = transaction_id();
  report.changes = TRY(Changes(false, {})).size();
  auto planned = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen) -> Status {
        report.conflicts = TRY(FindConflicts(frozen));
        CommitPlan plan = TRY(PlanCommit(frozen, {}));
        report.steps = TRY(DescribeSteps(frozen, plan));
        report.withheld = std::move(plan.withheld);
        return {};
      });
  TRY(std::move(planned));
  return report;
}

// --- discard ---------------------------------------------------------------

Result<std::string> StoredWorkspace::Discard() {
  const MutexLock ending(end_mutex_);
  if (IsHalfWay()) return std::unexpected(HalfWay());
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

Result<UndoReport> StoredWorkspace::Undo(const std::string& wanted) {
  const MutexLock ending(end_mutex_);
  if (IsHalfWay()) return std::unexpected(HalfWay());
  const FileLock lock = TRY(LockCommits());
  TRY(FinishUnfinished());
  const auto frozen = [&](const std::function<Status()>& work) {
    return filesystem_->WhileFrozen(
        [&](OverlayFilesystem::Frozen& held) -> Status {
          TRY(held.PinOrphans());
          return work();
        });
  };
  UndoReport report =
      TRY(committer_.Undo(wanted, options_.filesystem.clock->Now(), frozen));
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
    Committer committer(*store_, base_);
    const auto lock = committer.Lock(0);
    if (!lock) return;
    std::ignore = committer.CollectGarbage(options_.retention);
  });
}

Result<GcReport> StoredWorkspace::CollectGarbage(const Retention& retention) {
  const MutexLock ending(end_mutex_);
  StopCollecting();
  if (IsHalfWay()) return std::unexpected(HalfWay());
  return committer_.FreeSpace(retention, kCommitLockMs);
}

void StoredWorkspace::StopCollecting() {
  if (collecting_.joinable()) collecting_.join();
}

}  // namespace txfs
