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

/// What whoever works in a mount can change: there, and by a commit.
struct Reach {
  std::string workspace, mountpoint;
};

/// An error when one of `sources` lies in a txfs mount, or will be beneath the
/// one that is to be made: who works there could change it, and a reload would
/// read that. Those in the workspace are read beneath its mounts.
Status CheckOutOfReach(const policy::Sources& sources, const Reach& reach);
/// The same of the program that `policy` has asked, and of its arguments, which
/// cannot lie in the workspace either. A null policy has none.
Status CheckHookOutOfReach(const policy::Policy* policy, const Reach& reach);

}  // namespace txfs::cli
