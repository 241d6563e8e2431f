// Files without a name (O_TMPFILE). As other orphans they are only in memory,
// with their content in the spool, and go with their last reference. The link
// that names one is the first that the journal, the policy and the diff see.

#include <utility>

#include "fs/overlay/crossings.h"
#include "fs/overlay/new_object.h"
#include "fs/overlay/overlay.h"
#include "fs/veto/lock_check.h"

namespace txfs {

Result<Node> OverlayFilesystem::CreateUnnamed(const Caller& caller,
                                              Ino directory, uint32_t mode) {
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  if (halted_) return Fail(EROFS, "a commit or discard stopped half-way");
  InodeRecord record = NewRecord(FileType::kRegular, mode);
  const auto list = TRY(DefaultAclOf(directory));
  const auto lists = InheritAcl(list, caller, record.attr);
  const auto mounts = TRY(mounts_.Get());
  const WriterLock lock(tree_mutex_);
  const Inode* parent = TRY(FindDirectory(directory));
  if (parent->IsOrphan()) return Fail(ENOENT, "directory");
  TRY(LockCheck(base_).Make(*parent));
  RunBudget::Share share(budget_);
  TRY(share.Take(0, 1));
  share.Keep();
  SetOwner(record, *parent, caller);
  Attr& attr = record.attr;
  attr.atime = attr.mtime = attr.ctime = options_.clock->Now();
  const Ino ino = tree_.AllocateIno();
  tree_.SetInode(ino, record);
  Inode& inode = *tree_.Find(ino);
  for (const auto& [name, value] : lists) tree_.SetXattr(ino, name, value);
  Inode::Orphan& orphan = inode.orphan.Make();
  orphan.last_path =
      tree_.PathOf(*parent, "#" + std::to_string(tree_.StatOf(inode).st_ino));
  orphan.unnamed = {.device = tree_.DeviceOf(*parent),
                    .mount = Crossings(tree_, *mounts).MountOf(*parent)};
  inode.own.Make().born.Make() = attr.ctime;
  ++inode.lookups;
  // As after a create and an unlink.
  tree_.SetInode(ino, std::nullopt);
  --inode.lookups;
  return Hold(inode);
}

bool OverlayFilesystem::IsUnnamed(Ino ino) const {
  const ReaderLock lock(tree_mutex_);
  const Inode* inode = tree_.Find(ino);
  return inode != nullptr && inode->orphan->unnamed;
}

Result<Node> OverlayFilesystem::NameUnnamed(Plan plan, Inode& directory,
                                            Inode& inode,
                                            std::string_view name) {
  Change& change = plan.change();
  change.op = Op::kCreate;
  change.path = tree_.PathOf(directory, name);
  TRY(LockCheck(base_).Make(directory));
  TRY(Judging(plan).Make(directory, name, inode.record));

  InodeRecord record = inode.record;
  record.attr.nlink = 1;
  record.attr.ctime = plan.now();
  plan.AddInode(inode.ino, std::move(record));
  for (const auto& [key, value] : *inode.own->xattrs) {
    plan.AddXattr(inode.ino, key, value);
  }
  ExtentEdit content{.ino = inode.ino};
  for (const auto& [offset, extent] : inode.extents) {
    content.after.push_back(extent);
  }
  // The change brings them, and counts for limits.
  judge_.GiveBack(content.after);
  auto extents = std::exchange(inode.extents, {});
  Inode::Own& own = inode.own.Make();
  const uint64_t stored_bytes = std::exchange(own.stored_bytes, 0);
  plan.SetExtents(std::move(content));
  plan.SetDentry(directory, name, {DentryKind::kInode, inode.ino});
  plan.TouchDirectory(directory);
  if (auto accepted = Accept(std::move(plan)); !accepted) {
    inode.extents = std::move(extents);
    own.stored_bytes = stored_bytes;
    judge_.ForgetTree();
    return std::unexpected(std::move(accepted).error());
  }
  Inode::Orphan& was = inode.orphan.Make();
  was.unnamed.reset();
  was.last_path.clear();
  was.segment = 0;
  was.end = 0;
  return Hold(inode);
}

}  // namespace txfs
