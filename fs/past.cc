#include "fs/past.h"

#include <sys/stat.h>

namespace txfs {

Result<std::shared_ptr<Past>> Past::At(OverlayFilesystem::Frozen& frozen,
                                       const Savepoint& savepoint) {
  const struct stat root = TRY(frozen.base.Stat(""));
  std::shared_ptr<Past> past(new Past(savepoint, frozen.SharedJournal(), root));
  TRY(frozen.journal.Load(past->tree_));
  past->tree_.GoBack(TRY(frozen.journal.PlanRewind(savepoint.lsn)));
  // Also to what the base has no more.
  past->tree_.RelinkUpper(LookAt(frozen.base));
  return past;
}

Result<size_t> Past::Read(OverlayFilesystem& filesystem, Ino ino,
                          uint64_t offset, MutableByteSpan out) const {
  const Inode* inode = tree_.Find(ino);
  if (inode == nullptr) return Fail(ESTALE, "inode");
  return filesystem.ReadPast(*inode, savepoint_, journal_.lock(), offset, out);
}

}  // namespace txfs
