#pragma once

#include <string>
#include <vector>

#include "journal/savepoint.h"
#include "journal/support/result.h"

namespace txfs {

/// The name of a new savepoint: `wanted`, or if that is empty, the next free
/// one of sp1, sp2, ... EEXIST if `wanted` is taken; EINVAL.
Result<std::string> NameSavepoint(const std::vector<Savepoint>& existing,
                                  const std::string& wanted);

/// The savepoint `name`, or if that is empty, the newest. ENOENT, with the
/// existing names.
Result<Savepoint> FindSavepoint(const std::vector<Savepoint>& existing,
                                const std::string& name);

}  // namespace txfs
