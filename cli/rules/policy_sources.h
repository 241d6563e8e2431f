#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "policy/policy.h"
#include "policy/sources.h"

namespace txfs::cli {

/// What a mount is told of rules, besides those that hold for every mount.
struct PolicyChoice {
  bool builtin = true;
  std::vector<std::string> without;  ///< ids of what is built in
  std::vector<std::string> files;    ///< absolute, the weakest first
};

/// Rules: where they come from, and what was read there.
struct PolicySetup {
  policy::Sources sources;
  std::vector<policy::SourceText> texts;
};

/// Where the rules of the workspace `workspace` come from, the weakest first:
/// built-in, /etc/txfs, the user's configuration, the workspace's .txfs, what
/// was chosen. EPERM: the machine's or the user's lies in the workspace, or a
/// symbolic link in the workspace leads to one.
Result<policy::Sources> PolicySources(const std::string& workspace,
                                      const PolicyChoice& choice);

/// The directories that the users of a mount can change: the mount itself, and
/// by a commit the workspace.
struct Reach {
  std::string workspace, mountpoint;
};

/// EPERM: one of `sources` lies in a txfs mount, or will lie beneath the one
/// that is to be made. Users of the mount could change it, and the next reload
/// would read that. Sources in the workspace are read beneath its mounts.
Status CheckOutOfReach(const policy::Sources& sources, const Reach& reach);
/// The same of the hook of `policy` and its arguments, which cannot lie in the
/// workspace either. Null: no policy, so no hook.
Status CheckHookOutOfReach(const policy::Policy* policy, const Reach& reach);

}  // namespace txfs::cli
