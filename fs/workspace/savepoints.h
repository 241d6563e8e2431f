#pragma once

#include <string>
#include <vector>

#include "journal/savepoint.h"
#include "journal/support/result.h"

namespace txfs {

/// The name of a savepoint that is to join `existing`: `wanted`, or the next
/// free one of sp1, sp2, ... when that is empty. EEXIST: it is taken; EINVAL.
Result<std::string> NameSavepoint(const std::vector<Savepoint>& existing,
                                  const std::string& wanted);

/// The savepoint `name`, or the newest when that is empty. ENOENT, with the
/// names there are.
Result<Savepoint> FindSavepoint(const std::vector<Savepoint>& existing,
                                const std::string& name);

}  // namespace txfs
