#pragma once

#include <string>

#include "journal/support/result.h"

namespace txfs {

/// Copies the open transaction `id` of the foreign store at `from` into the
/// store at `to`, where it must not be. Takes regular files of the names that a
/// transaction has and nothing else: no locks, no record of a daemon. What is
/// in them is as hostile as it was. kBusy when somebody has it open. Not
/// durable; what a failure leaves is removed with the store at `to`.
Status CopyTransaction(int from, int to, const std::string& id);

}  // namespace txfs
