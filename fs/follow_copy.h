#pragma once

#include "fs/base_directory.h"
#include "journal/base/result.h"
#include "journal/journal.h"

namespace txfs {

/// For a transaction whose workspace was copied or moved to another filesystem:
/// notes, in its journal, the objects that `base` has at the recorded paths,
/// where type, mode, size and time of modification are the recorded ones. What
/// differs stays as it is, and is a conflict.
Status FollowCopy(Journal& journal, const BaseDirectory& base);

}  // namespace txfs
