#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/planning/selection.h"
#include "fs/vault/commit_step.h"
#include "journal/support/result.h"

namespace txfs {

/// A file or directory to make in the vault before the point of no return.
struct StagedObject {
  Spot spot;  ///< in the vault; parents precede children
  Ino ino = kNoIno;
  /// The inode's own spool segment may become the file; attributes are set
  /// later.
  bool adopts = false;
  /// A base directory whose group the file gets when it is made; "": none.
  std::string nest;
};

/// Content to save in the vault for a patch: the ranges of `delta` of the
/// overlay's file `ino` or of the base file of inode `base`.
struct StagedDelta {
  Delta delta;
  Ino ino = kNoIno;
  Ino base = kNoIno;
};

/// Extended attributes that a step will set after the point of no return. The
/// filesystem may have no room for them, so they are tried before, on a
/// separate file.
struct TriedXattrs {
  Spot spot;  ///< in the vault
  Ino ino = kNoIno;
};

/// A step whose st_inos are known only after the vault is filled.
struct PlannedStep {
  CommitStep step;
  Ino object = kNoIno;  ///< staged: its st_ino becomes `step.ino`
  Ino parent = kNoIno;  ///< kLink, kUnlink: its st_ino becomes `step.parent`
};

/// Everything that a commit does, in order.
struct CommitPlan {
  std::vector<StagedObject> staged;
  std::vector<StagedDelta> deltas;
  std::vector<TriedXattrs> tried;
  std::vector<PlannedStep> steps;
  std::set<std::string> mounts;  ///< filesystems in the base that steps change
  /// Directories whose times the steps set because their entries change.
  std::set<Ino> touched;
  std::vector<std::string>
      withheld;  ///< sentences about changes that do not reach the base
};

struct PlanOptions {
  const Selection* selection = nullptr;  ///< only this part; null: everything
  bool clones = false;  ///< the vault's filesystem can share blocks of files
  bool asks = false;    ///< the plan is not carried out
};

/// Plans the commit of the tree. Files that were moved to another filesystem
/// mounted in the workspace are copied. EXDEV, with path and remedy, for
/// directories and files with several names that were moved so, and for removed
/// mountpoints; such operations are refused while the mount knows the
/// mountpoint.
Result<CommitPlan> PlanCommit(Frozen& frozen, const PlanOptions& options);

/// The mode of `inode` in the base: has set-user-ID and set-group-ID of a file
/// only if its base object had them.
[[nodiscard]] uint32_t CommittedMode(const Inode& inode);

/// The attributes of `inode` in the base, without xattrs.
[[nodiscard]] ObjectAttributes CommittedAttributes(const Inode& inode);

}  // namespace txfs
