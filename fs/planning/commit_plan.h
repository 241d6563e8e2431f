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

/// A file or directory to be made in the vault before the point of no return.
struct StagedObject {
  Spot spot;  ///< in the vault; parents come before children
  Ino ino = kNoIno;
  /// Its own segment of the spool may become the file: attributes come later.
  bool adopts = false;
};

/// Content to be saved in the vault for a patch: what the overlay has (`ino`)
/// or what the base has (`base`), in the ranges of `delta`.
struct StagedDelta {
  Delta delta;
  Ino ino = kNoIno;
  Ino base = kNoIno;
};

/// Extended attributes that a step sets after the point of no return, which the
/// filesystem may have no room for: tried before, on a file of their own.
struct TriedXattrs {
  Spot spot;  ///< in the vault
  Ino ino = kNoIno;
};

/// A step whose st_inos become known when the vault is filled.
struct PlannedStep {
  CommitStep step;
  Ino object = kNoIno;  ///< staged: `step.ino` is that of it
  Ino parent = kNoIno;  ///< kLink, kUnlink: `step.parent` is that of it
};

/// Everything a commit does, in order.
struct CommitPlan {
  std::vector<StagedObject> staged;
  std::vector<StagedDelta> deltas;
  std::vector<TriedXattrs> tried;
  std::vector<PlannedStep> steps;
  std::set<std::string> mounts;  ///< filesystems in the base that they change
  /// Directories whose times they set since something happens in them.
  std::set<Ino> touched;
  std::vector<std::string>
      withheld;  ///< sentences: what does not reach the base
};

struct PlanOptions {
  const Selection* selection = nullptr;  ///< only this; null: everything
  bool clones = false;  ///< the vault's filesystem can share blocks of files
};

/// Plans the commit of the tree. What got to another of the filesystems mounted
/// inside the workspace is copied there. EXDEV, with path and remedy, for
/// directories and files of several names that did, and for mountpoints that
/// went: their renames are refused while it is known where they lead.
Result<CommitPlan> PlanCommit(Frozen& frozen, const PlanOptions& options);

/// The mode of `inode` that reaches the base: set-user-ID and set-group-ID of a
/// file only if its base object had them.
[[nodiscard]] uint32_t CommittedMode(const Inode& inode);

/// The attributes with which `inode` reaches the base, without xattrs.
[[nodiscard]] ObjectAttributes CommittedAttributes(const Inode& inode);

}  // namespace txfs
