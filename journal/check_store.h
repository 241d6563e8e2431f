#pragma once

#include <string>
#include <vector>

#include "journal/base/result.h"
#include "journal/check.h"

namespace txfs {

/// Checks what a store consists of, without looking into journals. Returns the
/// ids of the open transactions whose files are all there; none when the store
/// is of a version that this program does not know.
Result<std::vector<std::string>> CheckLayout(int store, Findings findings);

}  // namespace txfs
