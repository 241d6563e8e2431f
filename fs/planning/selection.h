#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/overlay/frozen.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// A part of a transaction, for a commit or discard: changed names in the
/// upper, and upper inodes.
struct Selection {
  std::set<std::pair<Ino, std::string>> names;  ///< directory, name
  std::set<Ino> inodes;

  [[nodiscard]] bool empty() const { return names.empty() && inodes.empty(); }
};

enum class SelectionParents {
  kNeeded,  ///< for a commit: includes new and moved parent directories
  kApart,  ///< for a discard: parent directories stay, changed ones as they are
};

/// All changes at or below `paths`, with the changes that cannot be separated
/// from them: both ends of a rename, all names of an inode, all of a deleted
/// directory. `paths` are paths of the overlay, or base paths of moved or
/// deleted objects. An error, with the path, if there is no change at one of
/// them.
Result<Selection> SelectPaths(Frozen& frozen,
                              const std::vector<std::string>& paths,
                              SelectionParents parents);

/// Those changes at or below `paths` that can be committed without an effect
/// elsewhere: no change that goes with them has a path outside of `paths`, and
/// no file of the base among them has a hard link outside. Exception: new
/// directories above `paths` come along, if the base has nothing there.
/// `except`: paths of which no change is selected.
Result<Selection> SelectWithin(Frozen& frozen,
                               const std::vector<std::string>& paths,
                               const std::vector<std::string>& except);

/// The paths of `selection` in the overlay and in the base.
[[nodiscard]] std::set<std::string> PathsOf(Frozen& frozen,
                                            const Selection& selection);

/// All other changes of the transaction.
[[nodiscard]] Selection AllBut(Frozen& frozen, const Selection& selection);

}  // namespace txfs
