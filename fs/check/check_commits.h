#pragma once

#include <optional>
#include <string>

#include "fs/base/base_directory.h"
#include "journal/check.h"

namespace txfs {

/// Checks what commits leave in the store: the intent, and of the history what
/// undo needs (docs/recovery.md): plans, images and, where `base` is at hand,
/// vaults. Returns the transaction, if any, that the intent is to end.
Result<std::optional<std::string>> CheckCommits(int store,
                                                const BaseDirectory* base,
                                                Findings findings);

}  // namespace txfs
