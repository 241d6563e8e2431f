#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"
#include "policy/policy.h"
#include "policy/sources.h"

namespace txfs::cli {

/// A mount's own choice of policy sources, besides those of every mount.
struct PolicyChoice {
  bool builtin = true;
  std::vector<std::string> without;  ///< ids of built-in rules to leave out
  std::vector<std::string> files;    ///< absolute, the weakest first
};

/// Policy sources and the texts read from them.
struct PolicySetup {
  policy::Sources sources;
  std::vector<policy::SourceText> texts;
};

/// The policy sources of the workspace `workspace`, the weakest first:
/// built-in, /etc/txfs, the user's configuration, the workspace's .txfs,
/// `choice`. EPERM: the system's or the user's file lies in the workspace, or a
/// symbolic link in the workspace leads to a file.
Result<policy::Sources> PolicySources(const std::string& workspace,
                                      const PolicyChoice& choice);

/// The sources without those of a workspace.
[[nodiscard]] policy::Sources SourcesOfUser();

/// Directories that users of a mount can change: the mount, and through a
/// commit the workspace.
struct Reach {
  std::string workspace, mountpoint;
};

/// EPERM if one of `sources` lies in a txfs mount or another user's FUSE mount,
/// or will lie beneath the new mount: users of the mount could change it, and
/// the next reload would read that. Sources in the workspace are read beneath
/// its mounts.
Status CheckOutOfReach(const policy::Sources& sources, const Reach& reach);
/// As CheckOutOfReach, for the absolute paths in the hook's command, which must
/// not lie in the workspace either. Also fails if the hook cannot be executed.
/// Null: no policy, so no hook.
Status CheckHookOutOfReach(const policy::Policy* policy, const Reach& reach);

}  // namespace txfs::cli
