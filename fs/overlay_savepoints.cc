#include "fs/overlay.h"

namespace txfs {

Result<Savepoint> OverlayFilesystem::MarkSavepoint(const Caller& caller,
                                                   const std::string& name) {
  Plan plan = StartPlan(Op::kSavepoint, caller);
  plan.change().path = name;
  const ReaderLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  const Timestamp now = plan.now();
  const Lsn lsn = TRY(Accept(std::move(plan).Finish()));
  return Savepoint{name, lsn, now};
}

Result<StaleCaches> OverlayFilesystem::Frozen::Rollback(
    const Caller& caller, const Savepoint& savepoint, uint64_t* undone) {
  Plan plan = filesystem.StartPlan(Op::kRollback, caller);
  plan.change().path = savepoint.name;
  plan.change().offset = Raw(savepoint.lsn);
  Rewind rewind = TRY(journal.Rollback(std::move(plan).Finish()));
  *undone = rewind.changes;

  const Tree::WentBack went = tree.GoBack(rewind);
  for (const Extent& extent : went.kept) rewind.CountLive(extent, 1);
  for (const Extent& extent : went.given_up) rewind.CountLive(extent, -1);
  journal.SettleRewind(rewind);
  for (const Ino ino : went.gone) filesystem.files_.Drop(ino);
  filesystem.directories_.Clear();

  StaleCaches stale;
  for (const Ino ino : went.changed) {
    if (tree.Find(ino)->lookups > 0) stale.inodes.push_back(ino);
  }
  for (const auto& [key, value] : rewind.dentries) {
    const Inode* parent = tree.Find(key.first);
    if (parent == nullptr || parent->lookups == 0) continue;
    stale.names.push_back({key.first, key.second});
  }
  return stale;
}

}  // namespace txfs
