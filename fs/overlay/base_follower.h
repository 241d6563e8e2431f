#pragma once

#include <functional>
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

/// Runs `work` on the transaction as the next Follow will leave it, and
/// journals nothing: on the tree itself if there is nothing to follow, else on
/// a copy. Adds to `stale`. Takes as long as a load of the journal then.
Status WithBaseFollowed(Frozen& frozen,
                        const std::function<Status(Frozen&)>& work,
                        StaleCaches& stale);

/// Brings the tree up to date with changes that other programs and other
/// transactions made to the base. Each function returns what is stale.
class BaseFollower {
 public:
  explicit BaseFollower(Frozen& frozen) : frozen_(frozen), tree_(frozen.tree) {}

  /// Updates what the transaction left alone: names of changed files
  /// (LookForChanged), files that it touched without a change, mode and owner
  /// of directories, directories that the base has no longer. Journaled.
  StaleCaches Follow();
  /// The same for the upper inodes `changed`.
  StaleCaches Follow(const std::vector<Inode*>& changed);
  /// Looks at the whole base again, Follow included. Changes of the transaction
  /// stay. Pristine inodes become what the base has at their path, or orphans
  /// where it has nothing of their type.
  StaleCaches Refresh();
  /// The same for `inos`, without Follow. Call ForgetDirectories before.
  StaleCaches Refresh(std::span<const Ino> inos);
  /// Refresh of `inos`; upper directories among them follow mode and owner.
  StaleCaches LookAgain(std::span<const Ino> inos);

 private:
  StaleCaches FollowNames(const std::vector<Inode*>& changed);
  StaleCaches FollowTouched(const std::vector<Inode*>& all);
  StaleCaches DropLostDirectories();
  StaleCaches Delete(const LookedFor::Gone& gone);
  /// Journals that `inode`, of the record `before`, is `after` now, and the
  /// edits of its names.
  Status Append(Inode& inode, InodeRecord before,
                std::optional<InodeRecord> after, std::vector<Edit> names = {});
  Status MakePristine(Inode& inode);

  Frozen& frozen_;
  Tree& tree_;
};

}  // namespace txfs
