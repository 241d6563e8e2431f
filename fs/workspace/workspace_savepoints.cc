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
  std::ignore = journal->Drain();
  return report;
}

/// The last one asked for is kept: a diff asks for it once per file.
Result<std::shared_ptr<Past>> StoredWorkspace::PastAt(const std::string& name) {
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  const Savepoint savepoint = TRY(FindSavepoint(journal->Savepoints(), name));
  const MutexLock lock(past_mutex_);
  if (past_ && past_->Is(journal, savepoint)) return past_;
  past_.reset();
  past_ = TRY(filesystem_->WhileFrozen(
      [&](Frozen& frozen) { return Past::At(frozen, savepoint); }));
  return past_;
}

std::shared_ptr<Past> StoredWorkspace::TakePast() {
  const MutexLock lock(past_mutex_);
  return std::exchange(past_, nullptr);
}

Result<std::vector<NetChange>> StoredWorkspace::ChangesSince(
    const std::string& savepoint, const std::vector<std::string>& below) {
  FollowBase();
  std::ignore = TakePast();  // it follows, too
  std::shared_ptr<Past> past = TRY(PastAt(savepoint));
  SinceList list = TRY(filesystem_->WhileFrozen([&](Frozen& frozen) {
    return SinceList::Collect(frozen, std::move(past));
  }));
  return SelectChanges(TRY(std::move(list).Settle(*filesystem_)), below);
}

Result<size_t> StoredWorkspace::ReadPast(const std::string& savepoint, Ino ino,
                                         uint64_t offset, MutableByteSpan out) {
  return TRY(PastAt(savepoint))->Read(*filesystem_, ino, offset, out);
}

}  // namespace txfs
