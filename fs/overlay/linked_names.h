#pragma once

#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"

namespace txfs {

/// Result of the search for changed files that are not at their recorded paths.
struct LookedFor {
  struct Noted {
    Ino ino;
    std::string before;  ///< the former recorded path
  };
  std::vector<Noted> noted;  ///< have another recorded path now
  struct Gone {
    Ino ino;
    std::string path;
  };
  /// Unchanged files that the base has only under names that the transaction
  /// deleted; `path` is one of these. Both sides together deleted the file.
  std::vector<Gone> gone;
  /// The kernel may have their names or content from before.
  std::vector<Ino> stale;
  std::vector<StaleCaches::Name> shown;  ///< lead to a found file now
};

/// Looks for the base objects of `changed`, which are upper inodes. Rules for a
/// file with several hard links:
/// - The base deleted the recorded path: the file gets another recorded path,
///   one that the base still has and the transaction does not hide. For a file
///   that the transaction gave a name, a hidden path will do.
/// - Another program reused a known name for another object: that name becomes
///   the recorded path, which is a conflict.
/// - No known name leads to the file: the whole base is searched, once between
///   refreshes.
/// - No name is found: the inode becomes `lost`.
LookedFor LookForChanged(Tree& tree, const BaseDirectory& base,
                         const std::vector<Inode*>& changed);

/// Finds another name for each changed file with several hard links that the
/// kernel holds and of which the tree knows no name. Call before a commit: the
/// file continues under that name. Searches the whole base if there is such a
/// file. Returns the names; the kernel may have negative dentries for them.
std::vector<StaleCaches::Name> NoteNamesOfHeld(Tree& tree,
                                               const BaseDirectory& base);

/// Finds another name in the base for each of `files`, which have several hard
/// links and are about to lose all known names. A name counts only if the
/// overlay can show it. Searches the whole base. Returns the names.
std::vector<StaleCaches::Name> ShowElsewhere(Tree& tree,
                                             const BaseDirectory& base,
                                             const std::vector<Inode*>& files);

/// Adds names at and below `paths` of the overlay that the kernel never looked
/// up, if they lead to files that the transaction changed. Reads the base
/// directories there only if there are such files.
void NoteNamesBelow(Tree& tree, const BaseDirectory& base,
                    const std::vector<std::string>& paths);

}  // namespace txfs
