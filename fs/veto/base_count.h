#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fs/base/base_directory.h"
#include "journal/support/result.h"
#include "policy/limit.h"

namespace txfs {

/// For each of `limits`, the number of files and directories of `base` that it
/// counts. Lists every directory once; unreadable directories count as empty.
Result<std::vector<uint64_t>> CountBase(
    const BaseDirectory& base, std::span<const policy::Limit* const> limits);

}  // namespace txfs
