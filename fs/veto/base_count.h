#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fs/base/base_directory.h"
#include "journal/support/result.h"
#include "policy/limit.h"

namespace txfs {

/// How many names of `base` each of `limits` counts: files and directories.
/// Lists every directory once; those that cannot be looked into have nothing in
/// them.
Result<std::vector<uint64_t>> CountBase(
    const BaseDirectory& base, std::span<const policy::Limit* const> limits);

}  // namespace txfs
