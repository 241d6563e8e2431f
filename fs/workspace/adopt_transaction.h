#pragma once

#include "fs/base/base_directory.h"
#include "journal/journal.h"
#include "journal/support/result.h"

namespace txfs {

/// Whether a transaction's recorded base objects are those of the adopting
/// workspace, or of an original of which it is a copy with other inode numbers.
enum class NotedObjects { kOfThis, kOfOriginal };

/// Adapts the journal of a foreign store's transaction to the workspace `base`:
/// - With kOfOriginal, records the objects that `base` has at the recorded
///   paths if type, mode, size and mtime are as recorded. Others stay as
///   recorded, and are conflicts.
/// - Gives the caller what the transaction made, and all else the owner that it
///   has in `base`.
/// - Removes set-user-ID and set-group-ID from regular files unless content and
///   mode are unchanged, and all extended attributes other than user.*.
/// - Drops its savepoints, which have the old state.
Status AdoptTransaction(Journal& journal, const BaseDirectory& base,
                        NotedObjects objects);

}  // namespace txfs
