#pragma once

#include <vector>

#include "cli/daemon/live_policy.h"
#include "fs/posix/synthetic_directory.h"
#include "fs/workspace/workspace.h"

namespace txfs::cli {

/// In the root of a mount: the one name there that nobody can take.
inline constexpr const char* kAgentDirectory = ".txfs";

/// What a mount tells those who work in it, in the directory .txfs
/// (docs/policy.md). Both arguments outlive the files.
std::vector<SyntheticFile> AgentFiles(Workspace& workspace, LivePolicy& policy);

}  // namespace txfs::cli
