#pragma once

#include <string>

#include "fs/workspace/workspace.h"
#include "journal/check.h"

namespace txfs::testing {

/// What CheckStore says about the store of the workspace, one problem a line;
/// empty when all is well.
std::string FindProblems(const std::string& workspace);

/// The same report as it is.
CheckReport CheckWorkspaceStore(const std::string& workspace);

/// How the status differs from the list of changes and that of conflicts; empty
/// when all is well.
std::string FindWrongStatus(Workspace& workspace);

}  // namespace txfs::testing
