#include "fs/diff/past.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "fs/overlay/linked_names.h"
#include "fs/overlay/overlay.h"
#include "journal/support/pieces.h"

namespace txfs {

Result<std::shared_ptr<Past>> Past::At(Frozen& frozen,
                                       const Savepoint& savepoint) {
  const struct stat root = TRY(frozen.base.Stat(""));
  std::shared_ptr<Past> past(new Past(savepoint, frozen.SharedJournal(), root));
  TRY(frozen.journal.Load(past->tree_));
  past->tree_.GoBack(TRY(frozen.journal.PlanRewind(savepoint.lsn, kNoLsn)));
  Tree& tree = past->tree_;
  const LookedFor found = LookForChanged(tree, frozen.base, tree.upper());
  for (const LookedFor::Gone& gone : found.gone) {
    tree.Find(gone.ino)->MakeOrphan();
  }
  for (const LookedFor::Noted& was : found.noted) {
    // It is to be seen by the name that is noted now.
    Inode* directory = tree.FindBaseDirectory(ParentPath(was.before));
    if (directory == nullptr) continue;
    const std::string name(BaseName(was.before));
    const Inode* there = directory->CachedChild(name);
    if (there != nullptr && there->ino == was.ino) {
      tree.DropCached(*directory, name);
    }
  }
  // Also to what the base has no more.
  tree.RelinkUpper(LookAt(frozen.base));
  // What was touched for nothing is what the base has by now.
  std::vector<const Inode*> as_they_were;
  tree.ForEachUpper([&](const Inode& inode) {
    if (tree.IsAsItWas(inode)) as_they_were.push_back(&inode);
  });
  for (const Inode* inode : as_they_were) {
    const std::vector<Inode::Link> links = inode->links.ToVector();
    for (const Inode::Link& link : links) {
      if (tree.Find(link.parent)->UpperSlot(link.name) == nullptr) continue;
      tree.SetDentry(link.parent, link.name, {});
    }
    tree.SetInode(inode->ino, {});
  }
  return past;
}

Result<size_t> Past::Read(OverlayFilesystem& filesystem, Ino ino,
                          uint64_t offset, MutableByteSpan out) const {
  const Inode* inode = tree_.Find(ino);
  if (inode == nullptr) return Fail(ESTALE, "inode");
  return filesystem.ReadPast(*inode, savepoint_, journal_.lock(), offset, out);
}

}  // namespace txfs
