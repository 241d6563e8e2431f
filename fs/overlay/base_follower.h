#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/overlay/linked_names.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"
#include "journal/change.h"

namespace txfs {

/// Sets Inode::lost of the directories of a tree that was just loaded.
void NoteLostDirectories(Tree& tree, const BaseDirectory& base);

/// Brings the tree up to date with changes that other programs and other
/// transactions made to the base. Each function returns the caches that the
/// kernel must drop.
class BaseFollower {
 public:
  /// kLater: before the next change, so that a query does not write to the
  /// journal (Frozen::Follow).
  enum class Journaling { kNow, kLater };

  explicit BaseFollower(Frozen& frozen, Journaling when = Journaling::kNow)
      : frozen_(frozen), tree_(frozen.tree), when_(when) {}

  /// Updates state that only other programs changed: names of changed files
  /// (LookForChanged), unchanged upper files, content of files of which the
  /// transaction only deleted names, mode and owner of directories, and lost
  /// directories.
  StaleCaches Follow();
  /// The same for the upper inodes `changed`.
  StaleCaches Follow(const std::vector<Inode*>& changed);
  /// Compares the whole tree with the base, including Follow. Changes of the
  /// transaction stay. A pristine inode takes the attributes of the object at
  /// its path, or becomes an orphan if the base has no object of its type
  /// there.
  StaleCaches Refresh();
  /// Refreshes only `inos`, without Follow. Call ForgetDirectories before.
  StaleCaches Refresh(std::span<const Ino> inos);
  /// Refreshes `inos` and updates mode and owner of the upper directories among
  /// them.
  StaleCaches LookAgain(std::span<const Ino> inos);

 private:
  StaleCaches FollowNames(const std::vector<Inode*>& changed);
  StaleCaches FollowTouched(const std::vector<Inode*>& all);
  StaleCaches DropLostDirectories();
  StaleCaches Delete(const LookedFor::Gone& gone);
  /// Makes the edits `names` and the change of the record of `inode` from
  /// `before` to `after`.
  void Update(Inode& inode, InodeRecord before,
              std::optional<InodeRecord> after, std::vector<Edit> names = {});
  void MakePristine(Inode& inode);

  Frozen& frozen_;
  Tree& tree_;
  const Journaling when_;
};

}  // namespace txfs
