#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fs/overlay.h"
#include "fs/workspace.h"
#include "journal/base/bytes.h"
#include "journal/base/result.h"

namespace txfs {

/// What a commit step does. Base paths are relative to the workspace root,
/// stage names to the stage directory. Every step can be repeated.
enum class StepKind : uint8_t {
  kPatch = 1,     ///< write the inode's extents and size into base file `path`
  kHold = 2,      ///< hard link base file `path` into the stage as `stage`
  kDetach = 3,    ///< rename base `path` into the stage as `stage`
  kAttach = 4,    ///< rename `stage` to base `path`
  kExchange = 5,  ///< swap `stage` and base `path`
  kLink = 6,      ///< hard link base `from` (or `stage`, if set) as `path`
  kAttributes = 7,  ///< set mode, owner, times, xattrs of base `path`
};

struct CommitStep {
  StepKind kind = StepKind::kAttributes;
  std::string path;
  std::string stage;
  std::string from;
  Ino ino = kNoIno;         ///< kPatch: whose extents
  uint64_t base_ino = 0;    ///< st_ino. kPatch, kHold, kDetach: of the base
                            ///< object; kExchange: of the staged file
  Attr attr;                ///< kAttributes
  bool set_xattrs = false;  ///< kAttributes: `xattrs` are all there are to be
  std::map<std::string, std::string> xattrs;

  bool operator==(const CommitStep&) const = default;
};

/// A file or directory to be made in the stage before the point of no return.
struct StagedObject {
  std::string stage;
  Ino ino = kNoIno;
};

/// Everything a commit does, in order.
struct CommitPlan {
  std::vector<StagedObject> staged;
  std::vector<CommitStep> steps;
  std::vector<std::string>
      withheld;  ///< sentences: what does not reach the base
};

/// Base objects that are no longer what the transaction saw.
Result<std::vector<Conflict>> FindConflicts(OverlayFilesystem::Frozen& frozen);

/// Plans the commit of everything in the tree. EXDEV, with path and remedy,
/// where a change would cross into a filesystem mounted inside the workspace.
Result<CommitPlan> PlanCommit(OverlayFilesystem::Frozen& frozen);

/// Encodes the steps per docs/format.md, "Commit plan".
Bytes EncodeSteps(const std::vector<CommitStep>& steps);
Result<std::vector<CommitStep>> DecodeSteps(ByteSpan in);

/// The mode of `inode` that reaches the base: set-user-ID and set-group-ID of a
/// file only if its base object had them.
[[nodiscard]] uint32_t CommittedMode(const Inode& inode);

}  // namespace txfs
