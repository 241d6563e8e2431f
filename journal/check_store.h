#pragma once

#include <string>
#include <vector>

#include "journal/check.h"
#include "journal/support/result.h"

namespace txfs {

/// What a store has for further checks.
struct StoreLayout {
  bool complete = false;  ///< all entries are there, and the version is known
  std::vector<std::string> open;  ///< transactions with all their files
};

/// Checks the entries of a store. Does not read journals and commit plans.
Result<StoreLayout> CheckLayout(int store, Findings findings);

}  // namespace txfs
