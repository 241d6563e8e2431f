#pragma once

#include <string>

#include "journal/support/result.h"
#include "policy/limit.h"
#include "policy/section.h"

namespace txfs::policy {

/// Reads a [[limit]] of `file`, except its id and errno, which Load reads as
/// those of rules. Errors as Load.
Result<Limit> ReadLimit(const Section& section, const std::string& file);

}  // namespace txfs::policy
