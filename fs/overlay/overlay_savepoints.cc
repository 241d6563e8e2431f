#include <algorithm>
#include <iterator>

#include "fs/overlay/overlay.h"
#include "journal/support/pieces.h"

namespace txfs {

Result<Savepoint> OverlayFilesystem::MarkSavepoint(const Caller& caller,
                                                   const std::string& name) {
  Plan plan = StartPlan(Op::kSavepoint, caller);
  plan.change().path = name;
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  const Timestamp now = plan.now();
  const Lsn lsn = TRY(Accept(std::move(plan)));
  return Savepoint{name, lsn, now};
}

std::shared_ptr<Journal> OverlayFilesystem::Frozen::SharedJournal() const {
  // Held by WhileFrozen.
  return [&]() NO_THREAD_SAFETY_ANALYSIS { return filesystem.journal_; }();
}

std::shared_ptr<const policy::Policy> OverlayFilesystem::Frozen::SharedPolicy()
    const {
  // Held by WhileFrozen.
  return [&]() NO_THREAD_SAFETY_ANALYSIS { return filesystem.policy_; }();
}

Result<size_t> OverlayFilesystem::ReadPast(
    const Inode& inode, const Savepoint& savepoint,
    const std::shared_ptr<Journal>& journal, uint64_t offset,
    MutableByteSpan out) {
  // With the gate held nobody drops the savepoint, which keeps the content.
  const ReaderLock gate(gate_);
  const auto savepoints = journal_->Savepoints();
  if (journal != journal_ ||
      std::ranges::find(savepoints, savepoint) == savepoints.end()) {
    return Fail(ENOENT, "savepoint \"" + savepoint.name + "\"");
  }
  ReadPlan plan;
  {
    const ReaderLock lock(tree_mutex_);
    plan = PlanRead(inode, offset, out.size());
  }
  plan.journal = journal_;
  plan.preimages = preimages_;
  return ReadPieces(plan, offset, out);
}

Result<StaleCaches> OverlayFilesystem::Frozen::Rollback(
    const Caller& caller, const Savepoint& savepoint, uint64_t* undone) {
  Plan plan = filesystem.StartPlan(Op::kRollback, caller);
  plan.change().path = savepoint.name;
  plan.change().offset = Raw(savepoint.lsn);
  Rewind rewind = TRY(journal.Rollback(std::move(plan).Finish()));
  *undone = rewind.changes;

  const Tree::WentBack went = tree.GoBack(rewind);
  ForgetMeters();
  const Tree::Look look = BaseLook();
  StaleCaches stale;
  for (Inode* inode : went.changed) {
    if (!inode->upper) continue;
    tree.Relink(*inode, look);
    // What was changed is seen where others put another file.
    if (!tree.IsShadowed(*inode) || inode->IsUnchanged()) continue;
    const std::string& path = inode->record.base->path;
    Inode* parent = tree.FindBaseDirectory(ParentPath(path));
    const std::string name(BaseName(path));
    Inode* theirs = tree.Find(parent->CachedSlot(name)->cached);
    if (theirs->upper || theirs->IsDirectory()) continue;
    const Ino ino = theirs->ino;
    const SharedFd open =
        filesystem.files_.Find(ino, BaseIdentity::Of(*theirs->record.base));
    tree.DropCached(*parent, name);
    tree.Relink(*inode, look);
    stale.names.push_back({parent->ino, name});
    theirs = tree.Find(ino);
    if (theirs == nullptr || !theirs->IsOrphan()) continue;
    // As with what others deleted: who has it open reads on.
    theirs->taken = true;
    theirs->pinned_base = open;
    stale.inodes.push_back(ino);
  }
  for (const Extent& extent : went.kept) rewind.CountLive(extent, 1);
  for (const Extent& extent : went.given_up) rewind.CountLive(extent, -1);
  journal.SettleRewind(rewind);
  for (const Ino ino : went.gone) filesystem.files_.Drop(ino);
  filesystem.directories_.Clear();
  filesystem.links_.ForgetMoves();

  for (const Inode* inode : went.changed) {
    if (inode->lookups > 0) stale.inodes.push_back(inode->ino);
  }
  std::vector<Ino> moved;
  for (const auto& [key, value] : rewind.dentries) {
    const Inode* parent = tree.Find(key.first);
    if (parent == nullptr || parent->lookups == 0) continue;
    stale.names.push_back({key.first, key.second});
    const auto slot = parent->slots.find(key.second);
    if (slot == parent->slots.end()) continue;
    moved.push_back(slot->second.IsUpper() ? slot->second.upper.ino
                                           : slot->second.cached);
  }
  AddMoved(moved, stale);
  // There may be many others, of which it changed nothing.
  std::vector<Inode*> upper;
  std::ranges::copy_if(went.changed, std::back_inserter(upper), &Inode::upper);
  stale.Append(FollowBase(upper));
  return stale;
}

}  // namespace txfs
