#pragma once

#include "cli/locate/context.h"
#include "cli/shell/reader.h"
#include "journal/support/result.h"
#include "policy/exec_rule.h"

namespace txfs::cli {

/// Where a command that is judged will run.
struct CommandStart {
  ShellStart shell;
  policy::Confinement confinement = policy::Confinement::kNone;
};

/// That of a command in `context`. `confined`: it runs in `txfs run`. Outside
/// of any workspace, the directory takes the workspace's place. Asks no daemon
/// if the directory is in a mount.
/// `in_run`: within `txfs run`, which hides the records of workspaces.
Result<CommandStart> StartOf(const Context& context, bool confined,
                             bool in_run = false);

}  // namespace txfs::cli
