#pragma once

#include <string>
#include <vector>

#include "fs/planning/commit_plan.h"
#include "journal/support/result.h"

namespace txfs {

/// Describes the steps of `plan` to users: "move old/ to new/", "replace a.c".
/// One line per step, without those by which an object only passes through the
/// vault.
Result<std::vector<std::string>> DescribeSteps(Frozen& frozen,
                                               const CommitPlan& plan);

}  // namespace txfs
