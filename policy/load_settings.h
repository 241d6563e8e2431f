#pragma once

#include <toml++/toml.h>

#include <string>

#include "journal/support/result.h"
#include "policy/section.h"
#include "policy/settings.h"

namespace txfs::policy {

/// Reads the tables [ask] and [hook] of a policy file. `root` is the whole
/// file, `top` the section of it. Errors as Load.
Result<Settings> ReadSettings(const std::string& file, const toml::table& root,
                              const Section& top);

}  // namespace txfs::policy
