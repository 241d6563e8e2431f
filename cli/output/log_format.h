#pragma once

#include <cstdint>
#include <string>

#include "cli/output/json.h"
#include "journal/denials.h"

namespace txfs::cli {

/// One line, whatever bytes names have.
[[nodiscard]] std::string LogLine(const LogEntry& entry);
/// A denial, with the rule's texts below.
[[nodiscard]] std::string DenialText(const LogEntry& entry);
/// The form of `log --json` (txfs(1)).
[[nodiscard]] Document LogDocument(const LogEntry& entry);

/// Reports on stderr how many further denials there were; no output for 0.
void SayDropped(uint64_t dropped);

}  // namespace txfs::cli
