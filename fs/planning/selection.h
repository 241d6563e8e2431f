#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fs/overlay/frozen.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// The part of a transaction that a commit or discard is about: names that the
/// upper changed, and upper inodes.
struct Selection {
  std::set<std::pair<Ino, std::string>> names;  ///< directory, name
  std::set<Ino> inodes;

  [[nodiscard]] bool empty() const { return names.empty() && inodes.empty(); }
};

enum class SelectionParents {
  kNeeded,  ///< for a commit: new and moved directories above come along
  kApart,   ///< for a discard: they stay, changed ones as they are
};

/// All changes at or below `paths` (of the overlay, or of the base where
/// something was moved away or deleted), with what cannot be told apart from
/// them: both ends of a rename, all names of an inode, a deleted directory as
/// a whole. An error, with the path, when there is no change at one of them.
Result<Selection> SelectPaths(Frozen& frozen,
                              const std::vector<std::string>& paths,
                              SelectionParents parents);

/// The paths of what is in it, in the overlay and in the base.
[[nodiscard]] std::set<std::string> PathsOf(Frozen& frozen,
                                            const Selection& selection);

/// Everything else that the transaction changed.
[[nodiscard]] Selection AllBut(Frozen& frozen, const Selection& selection);

}  // namespace txfs
