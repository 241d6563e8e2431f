#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/vault/commit_step.h"
#include "journal/change.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// Size of the pieces that are compared, bytes.
inline constexpr size_t kCompareBytes = 1 << 20;

enum class ChangeKind { kAdded, kDeleted, kModified, kRenamed, kTypeChanged };

/// One side of a net change.
struct ChangeSide {
  Attr attr;              ///< type, mode, owner, size, times
  std::string symlink;    ///< target
  std::string base_path;  ///< path in the base, from which content is read
  /// For an ended commit: the file of a vault (Vaults::PathOf) from which
  /// content is read instead.
  std::string vault_path;
  /// For an ended commit: content is that of base_path, overwritten with this
  /// content from the vault.
  std::optional<Delta> delta;
  Ino ino = kNoIno;  ///< after side, if the transaction touched it: content is
                     ///< read with Filesystem::Read
};

/// The net difference of one path between base and overlay. An object that was
/// touched but is equal has none.
struct NetChange {
  ChangeKind kind = ChangeKind::kModified;
  std::string path;      ///< after side; the before side of a deletion
  std::string old_path;  ///< renamed: the path before; else empty
  std::optional<ChangeSide> before, after;
  bool content = false;     ///< bytes, symlink target or type differ; also true
                            ///< for added and deleted
  bool attributes = false;  ///< mode, owner or xattrs differ
};

/// Takes one change of a list; an error ends the visit.
using ChangeVisitor = std::function<Status(NetChange change)>;

}  // namespace txfs
