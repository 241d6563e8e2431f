#pragma once

#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"

namespace txfs {

/// What became of changed files that the base has not where they are noted.
struct LookedFor {
  struct Noted {
    Ino ino;
    std::string before;  ///< the base path that was noted
  };
  std::vector<Noted> noted;  ///< they are noted by another name now
  struct Gone {
    Ino ino;
    std::string path;
  };
  /// Unchanged, and the base has them only by names that the transaction
  /// deleted (one of those): both sides together deleted them.
  std::vector<Gone> gone;
  std::vector<Ino> stale;  ///< show another st_ino, or other content
  std::vector<StaleCaches::Name> shown;  ///< lead to one of them from now on
};

/// Looks for the base objects of changed files. Those of several names
/// whose noted one the base has taken away are noted by another one that it
/// still has, and to be seen there: one that the transaction does not hide, or
/// for what it gave a name of its own any. Where others gave one to something
/// else, that one is noted: a conflict. For what has no known name left the
/// whole base is read, once between refreshes. What the base has by
/// no name that is known is `lost`.
/// `changed`: upper inodes.
LookedFor LookForChanged(Tree& tree, const BaseDirectory& base,
                         const std::vector<Inode*>& changed);

/// Before a commit: files of several names that the kernel holds and that lost
/// all names that somebody looked up are known by another one, for that is what
/// they are from then on. For these the whole base is read. Returns the names,
/// which the kernel may remember as missing.
std::vector<StaleCaches::Name> NoteNamesOfHeld(Tree& tree,
                                               const BaseDirectory& base);

/// Files of several names, of which the known ones are about to go, by another
/// one that the base has for them, each if there is one that can be shown. For
/// these the whole base is read. Returns the names.
std::vector<StaleCaches::Name> ShowElsewhere(Tree& tree,
                                             const BaseDirectory& base,
                                             const std::vector<Inode*>& files);

/// Names at and below `paths`, of the overlay, that nobody looked up, where
/// they are of files that the transaction changed: these files are known by
/// them, too. Reads the base's directories there, if there are such files.
void NoteNamesBelow(Tree& tree, const BaseDirectory& base,
                    const std::vector<std::string>& paths);

}  // namespace txfs
