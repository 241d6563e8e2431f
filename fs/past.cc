#include "fs/past.h"

#include <sys/stat.h>

#include <string>

#include "fs/linked_names.h"
#include "journal/base/pieces.h"

namespace txfs {

Result<std::shared_ptr<Past>> Past::At(OverlayFilesystem::Frozen& frozen,
                                       const Savepoint& savepoint) {
  const struct stat root = TRY(frozen.base.Stat(""));
  std::shared_ptr<Past> past(new Past(savepoint, frozen.SharedJournal(), root));
  TRY(frozen.journal.Load(past->tree_));
  past->tree_.GoBack(TRY(frozen.journal.PlanRewind(savepoint.lsn)));
  Tree& tree = past->tree_;
  for (const LookedFor::Noted& was : LookForChanged(tree, frozen.base).noted) {
    // That name leads to another file by now.
    Inode* directory = tree.FindBaseDirectory(ParentPath(was.before));
    if (directory == nullptr) continue;
    const std::string name(BaseName(was.before));
    const Slot* slot = directory->CachedSlot(name);
    if (slot != nullptr && slot->cached == was.ino) {
      tree.DropCached(*directory, name);
    }
  }
  // Also to what the base has no more.
  tree.RelinkUpper(LookAt(frozen.base));
  return past;
}

Result<size_t> Past::Read(OverlayFilesystem& filesystem, Ino ino,
                          uint64_t offset, MutableByteSpan out) const {
  const Inode* inode = tree_.Find(ino);
  if (inode == nullptr) return Fail(ESTALE, "inode");
  return filesystem.ReadPast(*inode, savepoint_, journal_.lock(), offset, out);
}

}  // namespace txfs
