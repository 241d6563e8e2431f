#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "journal/savepoint.h"
#include "journal/summary.h"

namespace txfs::cli {

/// What --json says of a transaction wherever it is spoken of (txfs(1)).
[[nodiscard]] Document SummaryDocument(const TransactionSummary& transaction);
/// A savepoint in --json output.
[[nodiscard]] Document SavepointDocument(const Savepoint& savepoint);

/// Of all rules.
[[nodiscard]] uint64_t DeniedCount(const std::vector<RuleCount>& denied);
/// "12 operations by hooks (10), secrets (2)"; of one that is not empty.
[[nodiscard]] std::string DeniedText(std::vector<RuleCount> denied);
[[nodiscard]] Document DeniedDocument(const std::vector<RuleCount>& denied);

/// "undoable", "undone", or nothing.
[[nodiscard]] std::string UndoMark(const TransactionSummary& transaction);

}  // namespace txfs::cli
