#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/image.h"
#include "journal/rewind.h"

namespace txfs {

/// A path that later changes built on the part.
struct Dependence {
  std::string path, reason;
  /// What these changes changed: objects, and names in directories.
  std::set<Ino> objects;
  std::set<std::pair<Ino, std::string>> names;

  /// Whether `change` is one of them.
  [[nodiscard]] bool IsOf(const Change& change) const;
};

/// How to take back one part of a transaction's log and keep what came later.
struct RevertPlan {
  /// From now to the state without the part. Empty: it has no effect now.
  std::vector<Edit> edits;
  Rewind rewind;                     ///< the values of the edits, for the tree
  std::vector<std::string> paths;    ///< that it changes, sorted
  std::vector<Dependence> built_on;  ///< sorted; if any, there are no edits
};

/// `part` undoes the part, `later` all changes after it; `now` has all rows of
/// the journal, and `tree` the same state. docs/calls.md, "Revert", has the
/// rules.
RevertPlan PlanRevert(Tree& tree, const Rewind& part, const Rewind& later,
                      const Image& now);

}  // namespace txfs
