#pragma once

#include <cstdint>

#include "fs/base/base_directory.h"
#include "fs/base/base_lock.h"
#include "fs/tree/inode.h"
#include "journal/support/result.h"

namespace txfs {

/// Refuses (EPERM) what the attributes immutable and append-only of base
/// objects forbid, as the kernel does without txfs. Looks at the base each
/// time. Requires the tree lock.
class LockCheck {
 public:
  explicit LockCheck(const BaseDirectory& base) : base_(base) {}

  /// A new name in `directory`.
  [[nodiscard]] Status Make(const Inode& directory) const;
  /// The removal of a name of `child`, or its move to another one.
  [[nodiscard]] Status Remove(const Inode& directory, const Inode& child) const;
  /// Another change of `inode`: of its attributes, its content or its names.
  [[nodiscard]] Status Alter(const Inode& inode) const;
  /// Setting all times of `inode` to now.
  [[nodiscard]] Status Touch(const Inode& inode) const;
  /// A write of [offset, ...). `append`: with O_APPEND. Does not look again at
  /// a changed file that had no such attribute.
  [[nodiscard]] Status Write(Inode& inode, uint64_t offset, bool append) const;

 private:
  [[nodiscard]] BaseLock Of(const Inode& inode) const;

  const BaseDirectory& base_;
};

}  // namespace txfs
