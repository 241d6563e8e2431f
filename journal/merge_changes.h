#pragma once

#include "journal/change.h"

namespace txfs {

/// Merges `later`, the next change, into `earlier` if both are the same kind of
/// operation (write, utimens) of one process on one file; else returns false
/// and changes nothing. The caller makes sure that the state between them is
/// not needed.
bool MergeChanges(Change& earlier, const Change& later);

}  // namespace txfs
