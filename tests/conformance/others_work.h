#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// What somebody does to the base, below `w`, while a transaction is open: some
/// of what is there is changed, replaced, removed, given other attributes or
/// another name, more often than not where the transaction changed something
/// (`changed`, paths), and where it made something (`made`) something else is
/// made. Depends on nothing but the base and `seed`, times
/// included.
void DoOthersWork(const BaseTree& base, const std::vector<std::string>& made,
                  const std::vector<std::string>& changed, uint64_t seed);

}  // namespace txfs::testing
