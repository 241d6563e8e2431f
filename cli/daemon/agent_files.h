#pragma once

#include <vector>

#include "cli/daemon/live_policy.h"
#include "fs/posix/synthetic_directory.h"
#include "fs/workspace/workspace.h"

namespace txfs::cli {

/// Name of the directory with the agent's files in the root of a mount.
/// Reserved.
inline constexpr const char* kAgentDirectory = ".txfs";

/// The files in .txfs for agents and users of a mount (docs/policy.md).
/// `workspace` and `policy` outlive them.
std::vector<SyntheticFile> AgentFiles(Workspace& workspace, LivePolicy& policy);

}  // namespace txfs::cli
