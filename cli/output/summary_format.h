#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "journal/savepoint.h"
#include "journal/summary.h"

namespace txfs::cli {

/// The form of a transaction in all --json output (txfs(1)).
[[nodiscard]] Document SummaryDocument(const TransactionSummary& transaction);
/// A savepoint in --json output.
[[nodiscard]] Document SavepointDocument(const Savepoint& savepoint);

/// What became of a run: "rolled back: exit 1".
[[nodiscard]] std::string RunOutcomeText(const RunRecord& run);
/// Its command as a shell takes it, with "..." if it is longer than that.
[[nodiscard]] std::string RunCommandText(const RunRecord& run);
/// "1.2 s".
[[nodiscard]] std::string Seconds(uint64_t ms);

/// The sum over all rules.
[[nodiscard]] uint64_t DeniedCount(const std::vector<RuleCount>& denied);
/// "12 operations by hooks (10), secrets (2)"; `denied` must not be empty.
[[nodiscard]] std::string DeniedText(std::vector<RuleCount> denied);
[[nodiscard]] Document DeniedDocument(const std::vector<RuleCount>& denied);

/// "undoable", "undone", or "".
[[nodiscard]] std::string UndoMark(const TransactionSummary& transaction);

}  // namespace txfs::cli
