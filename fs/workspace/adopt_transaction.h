#pragma once

#include "fs/base/base_directory.h"
#include "journal/journal.h"
#include "journal/support/result.h"

namespace txfs {

/// Whether the objects that a transaction notes are those of the workspace that
/// adopts it, or of one that this is a copy of: there they have other numbers.
enum class NotedObjects { kOfThis, kOfOriginal };

/// Makes a transaction of a foreign store one of the workspace `base`, in its
/// journal:
///  - of an original, it notes the objects that `base` has at the noted paths,
///    where type, mode, size and time of modification are the noted ones; what
///    differs stays as it is, and is a conflict;
///  - what the transaction made belongs to the caller, all else to whom it
///    belongs in `base`;
///  - no regular file has set-user-ID or set-group-ID unless it is unchanged,
///  and
///    nothing an extended attribute but of user.*;
///  - its savepoints, at which all of that was otherwise, are forgotten.
Status AdoptTransaction(Journal& journal, const BaseDirectory& base,
                        NotedObjects objects);

}  // namespace txfs
