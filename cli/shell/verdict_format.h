#pragma once

#include <string>

#include "cli/output/json.h"
#include "cli/shell/judge.h"

namespace txfs::cli {

/// As `txfs policy explain --json -- CMD` prints it (txfs(1)).
[[nodiscard]] Document VerdictDocument(const CommandVerdict& verdict);
/// For users: the verdict, what decides, each part that a rule matches, and
/// what could not be known.
[[nodiscard]] std::string VerdictText(const CommandVerdict& verdict);

}  // namespace txfs::cli
