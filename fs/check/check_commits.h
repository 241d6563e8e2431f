#pragma once

#include <optional>
#include <string>

#include "fs/base/base_directory.h"
#include "journal/check.h"

namespace txfs {

/// Checks what commits leave in the store (docs/recovery.md): the intent,
/// plans, images and, if `base` is available, vaults. Returns the transaction,
/// if any, that the intent will end.
Result<std::optional<std::string>> CheckCommits(int store,
                                                const BaseDirectory* base,
                                                Findings findings);

}  // namespace txfs
