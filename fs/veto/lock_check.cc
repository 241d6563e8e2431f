#include "fs/veto/lock_check.h"

#include <cerrno>

namespace txfs {
namespace {

Status NotImmutable(BaseLock lock) {
  if (lock != BaseLock::kImmutable) return {};
  return Fail(EPERM, "immutable in the base");
}

Status NotLocked(BaseLock lock) {
  if (lock == BaseLock::kAppendOnly) {
    return Fail(EPERM, "append-only in the base");
  }
  return NotImmutable(lock);
}

}  // namespace

BaseLock LockCheck::Of(const Inode& inode) const {
  if (!inode.record.base || inode.IsOrphan()) return BaseLock::kNone;
  return LockOf(base_, inode.record.base->path);
}

Status LockCheck::Make(const Inode& directory) const {
  return NotImmutable(Of(directory));
}

Status LockCheck::Remove(const Inode& directory, const Inode& child) const {
  TRY(NotLocked(Of(directory)));
  return NotLocked(Of(child));
}

Status LockCheck::Alter(const Inode& inode) const {
  return NotLocked(Of(inode));
}

Status LockCheck::Touch(const Inode& inode) const {
  return NotImmutable(Of(inode));
}

Status LockCheck::Write(Inode& inode, uint64_t offset, bool append) const {
  if (inode.upper && inode.unlocked) return {};
  const BaseLock lock = Of(inode);
  inode.unlocked = lock == BaseLock::kNone;
  if (append && offset >= inode.attr().size) return NotImmutable(lock);
  return NotLocked(lock);
}

}  // namespace txfs
