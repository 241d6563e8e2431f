#pragma once

#include <string>

#include "journal/support/result.h"

namespace txfs {

/// Copies the open transaction `id` of the foreign store at `from` into the
/// store at `to`, which must not have it. Copies only regular files with names
/// that a transaction has; no locks, no daemon record. Does not check their
/// content, which is not trusted. kBusy if the transaction is in use. Not
/// durable; remove the store at `to` after a failure.
Status CopyTransaction(int from, int to, const std::string& id);

}  // namespace txfs
