#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/locate/context.h"
#include "cli/run/run.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// What a program needs in a run besides what every run has.
struct Profile {
  std::string name;
  std::vector<std::string> programs;     ///< names of commands that it is for
  std::vector<std::string> keep;         ///< paths below the home, as "~/a"
  std::vector<std::string> show;         ///< as keep
  std::vector<std::string> environment;  ///< names of variables that pass
  /// Names of hosts, "*.example.org" for those below one.
  std::vector<std::string> network;
  std::optional<Settle> on_success, on_failure;
  bool may_nest = false;  ///< its own sandbox makes user namespaces
};

/// Parses a profile (docs/run.md, "Profiles"). EINVAL with "FILE:LINE: what is
/// wrong; what is expected".
Result<Profile> ParseProfile(const std::string& name, std::string_view text,
                             const std::string& file);

/// The profile `wanted`; none for "none". Without `wanted`: the one for the
/// program of `command`, if that has no slash. One of the user's files replaces
/// the built-in profile of the same name. kUsage for an unknown name; EPERM if
/// other users or runs can change one of the files.
Result<std::optional<Profile>> FindProfile(
    const std::optional<std::string>& wanted,
    const std::vector<std::string>& command);

/// Adds `profile` to `arguments`, which have the lists of the command line and
/// no outcomes yet. A path that they hide is neither shown nor kept.
void ApplyProfile(const Profile& profile, const Context& context,
                  RunArguments& arguments);

}  // namespace txfs::cli
