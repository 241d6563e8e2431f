#pragma once

#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/commit/conflict.h"
#include "fs/diff/changes.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs {

/// A transaction in `txfs show`.
struct CommitView {
  TransactionSummary summary;
  bool has_changes = false;        ///< the history still has them
  std::vector<NetChange> changes;  ///< by path, expanded
  /// Paths for which the content of one side was replaced in the base, and the
  /// reason.
  std::vector<Conflict> lost;
};

/// Shows the transaction that `wanted` means (FindTransaction).
///
/// The changes come from the plan. One side of their content is in the vault,
/// the other in the base, as long as the base is as in the image. An undone
/// commit is shown as its undo with the sides swapped. The content of a renamed
/// directory is shown as it is now.
Result<CommitView> ViewCommit(Store& store, const BaseDirectory& base,
                              const std::string& wanted);

}  // namespace txfs
