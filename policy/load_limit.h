#pragma once

#include <toml++/toml.h>

#include <string>

#include "journal/support/result.h"
#include "policy/limit.h"
#include "policy/section.h"

namespace txfs::policy {

/// Reads a [[limit]] of `file`, but for its id and errno, which are read as
/// those of rules are. Errors as of Load.
Result<Limit> ReadLimit(const Section& section, const std::string& file);

}  // namespace txfs::policy
