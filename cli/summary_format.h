#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "journal/summary.h"

namespace txfs::cli {

/// What --json says of a transaction wherever it is spoken of (txfs(1)).
[[nodiscard]] Document SummaryDocument(const TransactionSummary& transaction);

/// "undoable", "undone", or nothing.
[[nodiscard]] std::string UndoMark(const TransactionSummary& transaction);

}  // namespace txfs::cli
