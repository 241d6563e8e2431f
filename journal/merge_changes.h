#pragma once

#include "journal/change.h"

namespace txfs {

/// Makes `earlier` stand for `later`, too, the change after it, if both are the
/// same operation of one process on one file, of which nobody needs what was
/// between them; else leaves it alone and returns false.
bool MergeChanges(Change& earlier, const Change& later);

}  // namespace txfs
