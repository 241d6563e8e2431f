#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fs/vault/commit_step.h"
#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// What is compared at a time, bytes.
inline constexpr size_t kCompareBytes = 1 << 20;

enum class ChangeKind { kAdded, kDeleted, kModified, kRenamed, kTypeChanged };

/// One side of a net change.
struct ChangeSide {
  Attr attr;               ///< type, mode, owner, size, times
  std::string symlink;     ///< target
  std::string base_path;   ///< where the base has it; content is read there
  std::string vault_path;  ///< of an ended commit: content is read there, below
                           ///< its vault's id, instead
  std::optional<Delta> delta;  ///< of an ended commit: content is that of
                               ///< base_path with this, in the vault, over it
  Ino ino = kNoIno;  ///< after side, if the transaction touched it: its
                     ///< content is read with Filesystem::Read
};

/// The net difference of one path between base and overlay. Touched but equal
/// is none.
struct NetChange {
  ChangeKind kind = ChangeKind::kModified;
  std::string path;      ///< after side; the before side of a deletion
  std::string old_path;  ///< renamed: where it was; else empty
  std::optional<ChangeSide> before, after;
  bool content = false;     ///< bytes, symlink target or type differ (also true
                            ///< for added, deleted)
  bool attributes = false;  ///< mode, owner or xattrs differ
};

}  // namespace txfs
