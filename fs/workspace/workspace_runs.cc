#include <algorithm>
#include <utility>

#include "fs/workspace/stored_workspace.h"

namespace txfs {
namespace {

bool IsOngoing(const RunRecord& run) {
  return run.outcome == RunOutcome::kRunning;
}

}  // namespace

void StoredWorkspace::BeginRun(const RunRecord& run) {
  RunRecord begun = Bounded(run);
  begun.after = filesystem_->journal()->last_lsn();
  const MutexLock lock(mutex_);
  summary_.runs.push_back(std::move(begun));
  if (summary_.runs.size() > kRunsKept) {
    summary_.runs.erase(summary_.runs.begin());
  }
  WriteRuns();
}

void StoredWorkspace::SettleRun(const RunRecord& run) {
  const MutexLock lock(mutex_);
  settling_ = Bounded(run);
}

void StoredWorkspace::EndRun(const RunRecord& run) {
  RunRecord ended = Bounded(run);
  ended.until = filesystem_->journal()->last_lsn();
  const MutexLock lock(mutex_);
  settling_.reset();
  const auto known = std::ranges::find(summary_.runs, run.id, &RunRecord::id);
  // It may have ended with its transaction.
  if (known == summary_.runs.end()) return;
  ended.after = known->after;
  *known = std::move(ended);
  WriteRuns();
}

void StoredWorkspace::InterruptRuns() {
  const Lsn last = filesystem_->journal()->last_lsn();
  const MutexLock lock(mutex_);
  bool any = false;
  for (RunRecord& run : summary_.runs) {
    if (!IsOngoing(run)) continue;
    run.outcome = RunOutcome::kInterrupted;
    run.until = last;
    any = true;
  }
  if (any) WriteRuns();
}

void StoredWorkspace::AddSettledRun(TransactionSummary& ended) const {
  // Another command may have ended the transaction in another way.
  const bool commits = ended.state == TransactionState::kCommitted;
  if (!settling_ || (settling_->outcome == RunOutcome::kCommitted) != commits) {
    return;
  }
  const auto run = std::ranges::find(ended.runs, settling_->id, &RunRecord::id);
  if (run == ended.runs.end()) return;
  const Lsn after = run->after;
  *run = *settling_;
  run->after = after;
}

void StoredWorkspace::KeepSettledRun(TransactionSummary& part) const {
  std::string id;
  {
    const MutexLock lock(mutex_);
    if (settling_) id = settling_->id;
  }
  std::erase_if(part.runs, [&](const RunRecord& run) { return run.id != id; });
}

std::vector<RunRecord> StoredWorkspace::RunsThatGoOn() {
  const auto settled = std::exchange(settling_, std::nullopt);
  std::vector<RunRecord> runs = summary_.runs;
  std::erase_if(runs, [&](const RunRecord& run) {
    return !IsOngoing(run) || (settled && run.id == settled->id);
  });
  // The log of the next transaction begins anew.
  for (RunRecord& run : runs) run.after = kNoLsn;
  return runs;
}

void StoredWorkspace::WriteRuns() {
  // A run does not fail for want of what is only told.
  std::ignore = store_->WriteRuns(summary_.id, summary_.runs);
}

}  // namespace txfs
