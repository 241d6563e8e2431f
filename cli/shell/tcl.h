#pragma once

#include <string_view>
#include <vector>

#include "cli/shell/code.h"

namespace txfs::cli {

/// Like FindEffects, for Tcl and for the commands of Expect.
[[nodiscard]] std::vector<CodeEffect> EffectsOfTcl(std::string_view code);

}  // namespace txfs::cli
