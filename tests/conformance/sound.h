#pragma once

#include <string>

#include "journal/check.h"

namespace txfs::testing {

/// What CheckStore says about the store of the workspace, one problem a line;
/// empty when all is well.
std::string FindProblems(const std::string& workspace);

/// The same report as it is.
CheckReport CheckWorkspaceStore(const std::string& workspace);

}  // namespace txfs::testing
