#pragma once

#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/commit/conflict.h"
#include "fs/diff/changes.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs {

/// A transaction as `txfs show` shows it.
struct CommitView {
  TransactionSummary summary;
  bool has_changes =
      false;  ///< else the history does not have them, or no more
  std::vector<NetChange> changes;  ///< by path, expanded
  /// Paths whose content on one side was replaced in the base since, by reason.
  std::vector<Conflict> lost;
};

/// What is known of the transaction that `wanted` means (FindTransaction).
///
/// Changes come from the plan: one side of their content is in the base, as far
/// as that is still as the image says, the other in the vault. An undone commit
/// is the undo's with sides swapped. What is within a renamed directory is what
/// is there now.
Result<CommitView> ViewCommit(Store& store, const BaseDirectory& base,
                              const std::string& wanted);

}  // namespace txfs
