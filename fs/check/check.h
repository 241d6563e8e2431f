#pragma once

#include "fs/base/base_directory.h"
#include "journal/check.h"

namespace txfs {

/// Checks every invariant of the store in the directory `store`: layout,
/// journals, spools, commits, and the trees over `base` (null: not available).
/// Never writes. If the store is in use, checks twice and reports the problems
/// found both times. Damage is in the report. Errors: kBusy (in use and
/// changing too fast), and failures of the machine.
Result<CheckReport> CheckStore(int store, const BaseDirectory* base);

}  // namespace txfs
