#include <unistd.h>

#include <utility>

#include "fs/diff/change_list.h"
#include "fs/diff/past.h"
#include "fs/workspace/savepoints.h"
#include "fs/workspace/stored_workspace.h"
#include "journal/support/thread.h"

namespace txfs {

Caller StoredWorkspace::Ourselves() {
  return {.pid = static_cast<uint32_t>(::getpid()),
          .uid = ::geteuid(),
          .gid = ::getegid()};
}

Result<Savepoint> StoredWorkspace::MakeSavepoint(const std::string& name) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const auto existing = filesystem_->journal()->Savepoints();
  return filesystem_->MarkSavepoint(Ourselves(),
                                    TRY(NameSavepoint(existing, name)));
}

Result<RollbackReport> StoredWorkspace::Rollback(const std::string& name) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  RollbackReport report;
  report.savepoint = TRY(FindSavepoint(journal->Savepoints(), name));
  // Most of what is to be drained need not be while all is frozen.
  TRY(journal->Drain());
  const StaleCaches stale = TRY(filesystem_->WhileFrozen([&](Frozen& frozen) {
    return frozen.Rollback(Ourselves(), report.savepoint, &report.undone);
  }));
  EndNewestCall(report.savepoint);
  TellAll(stale);
  return report;
}

void StoredWorkspace::TellAll(const StaleCaches& stale) {
  StaleCaches all;
  {
    const Meanwhile tells([&] { Tell(stale); });
    // What is the base's again may be something else there by now.
    all = LookAgain(stale.inodes);
  }
  all.Append(stale);
  TellWatchers(all);
  // Gives back the space of what was undone. When that fails, the next drain
  // does.
  std::ignore = filesystem_->journal()->Drain();
}

/// The last two are kept: a diff asks for them once per file.
Result<std::shared_ptr<Past>> StoredWorkspace::PastAt(const std::string& name) {
  constexpr size_t kKept = 2;
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  const Savepoint savepoint = TRY(FindSavepoint(journal->Savepoints(), name));
  const MutexLock lock(past_mutex_);
  for (const auto& past : pasts_) {
    if (past->Is(journal, savepoint)) return past;
  }
  if (pasts_.size() == kKept) pasts_.erase(pasts_.begin());
  auto past = TRY(filesystem_->WhileFrozen(
      [&](Frozen& frozen) { return Past::At(frozen, savepoint); }));
  return pasts_.emplace_back(std::move(past));
}

std::vector<std::shared_ptr<Past>> StoredWorkspace::TakePasts() {
  const MutexLock lock(past_mutex_);
  return std::exchange(pasts_, {});
}

Result<std::vector<NetChange>> StoredWorkspace::ChangesSince(
    const std::string& savepoint, const std::string& until,
    const std::vector<std::string>& below) {
  FollowBase();
  std::ignore = TakePasts();  // they follow, too
  std::shared_ptr<Past> past = TRY(PastAt(savepoint));
  std::shared_ptr<Past> end;
  if (!until.empty()) end = TRY(PastAt(until));
  SinceList list = TRY(filesystem_->WhileFrozen([&](Frozen& frozen) {
    return SinceList::Collect(frozen, std::move(past), std::move(end));
  }));
  return SelectChanges(TRY(std::move(list).Settle(*filesystem_)), below);
}

Result<size_t> StoredWorkspace::ReadPast(const std::string& savepoint, Ino ino,
                                         uint64_t offset, MutableByteSpan out) {
  return TRY(PastAt(savepoint))->Read(*filesystem_, ino, offset, out);
}

}  // namespace txfs
