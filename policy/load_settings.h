#pragma once

#include <string>

#include "journal/support/result.h"
#include "policy/section.h"
#include "policy/settings.h"

namespace txfs::policy {

/// Reads the tables [ask] and [hook] of a policy file. `top`: the whole file.
/// Errors as Load.
Result<Settings> ReadSettings(const std::string& file, const Section& top);

}  // namespace txfs::policy
