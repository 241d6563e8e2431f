#pragma once

#include <toml++/toml.h>

#include <string>

#include "journal/support/result.h"
#include "policy/section.h"
#include "policy/settings.h"

namespace txfs::policy {

/// Reads the tables of a policy file that are about questions. Errors as of
/// Load. `top`: of `root`, which is all of the file.
Result<Settings> ReadSettings(const std::string& file, const toml::table& root,
                              const Section& top);

}  // namespace txfs::policy
