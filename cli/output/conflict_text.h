#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/commit/conflict.h"

namespace txfs::cli {

/// Conflicts for users: "PATH: deleted in the workspace, modified in the
/// transaction", on one line.
[[nodiscard]] std::string ConflictText(const Conflict& conflict);
/// "2 paths of the workspace changed under the transaction".
[[nodiscard]] std::string ConflictCount(size_t conflicts);
/// A line on stderr for each.
void SayConflicts(const std::vector<Conflict>& conflicts);
/// An array of objects with path, reason, ours and note.
[[nodiscard]] Document ConflictDocuments(
    const std::vector<Conflict>& conflicts);

}  // namespace txfs::cli
