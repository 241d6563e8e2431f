#pragma once

#include <string>
#include <vector>

#include "journal/check.h"
#include "journal/support/result.h"

namespace txfs {

/// What there is to look into.
struct StoreLayout {
  bool complete = false;  ///< the store is whole, and of a known version
  std::vector<std::string> open;  ///< transactions whose files are all there
};

/// Checks what a store consists of, without looking into journals and plans.
Result<StoreLayout> CheckLayout(int store, Findings findings);

}  // namespace txfs
