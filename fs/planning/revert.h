#pragma once

#include <string>
#include <vector>

#include "fs/commit/conflict.h"
#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/image.h"
#include "journal/rewind.h"

namespace txfs {

/// How to take back one part of a transaction's log and keep what came later.
struct RevertPlan {
  /// From now to the state without the part. Empty: it has no effect now.
  std::vector<Edit> edits;
  Rewind rewind;                   ///< the values of the edits, for the tree
  std::vector<std::string> paths;  ///< that it changes, sorted
  /// Paths that later changes built on the part, sorted, with `reason`. If
  /// there are any, there are no edits.
  std::vector<Conflict> built_on;
};

/// `part` undoes the part, `later` all changes after it; `now` has all rows of
/// the journal, and `tree` the same state. docs/calls.md, "Revert", has the
/// rules.
RevertPlan PlanRevert(Tree& tree, const Rewind& part, const Rewind& later,
                      const Image& now);

}  // namespace txfs
