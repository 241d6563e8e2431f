#pragma once

#include "fs/base/base_directory.h"
#include "journal/check.h"

namespace txfs {

/// Checks every invariant of the store in the directory `store`: layout,
/// journals, spools, and the trees they make over `base` (null: not at hand).
/// Never writes. What is in use is looked at twice, and what is a problem both
/// times is one. Damage is in the report; an error is kBusy (in use, and
/// changing too fast), or trouble of the machine.
Result<CheckReport> CheckStore(int store, const BaseDirectory* base);

}  // namespace txfs
