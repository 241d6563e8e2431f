#pragma once

#include <cstdint>
#include <string>

#include "cli/output/json.h"
#include "journal/denials.h"

namespace txfs::cli {

/// One line, whatever is in names.
[[nodiscard]] std::string LogLine(const LogEntry& entry);
/// The same of a denial, with the rule's texts below.
[[nodiscard]] std::string DenialText(const LogEntry& entry);
/// As txfs(1) says of `log --json`.
[[nodiscard]] Document LogDocument(const LogEntry& entry);

/// Says on stderr how many denials there were besides those shown; of none
/// nothing.
void SayDropped(uint64_t dropped);

}  // namespace txfs::cli
