#pragma once

#include <string>
#include <vector>

#include "fs/planning/commit_plan.h"
#include "journal/support/result.h"

namespace txfs {

/// What the steps of `plan` do, for people: "move old/ to new/", "replace a.c".
/// A line for each but those by which an object only passes through the vault.
Result<std::vector<std::string>> DescribeSteps(Frozen& frozen,
                                               const CommitPlan& plan);

}  // namespace txfs
