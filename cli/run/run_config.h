#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/locate/context.h"
#include "cli/run/run.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// [run] of a configuration file (docs/run.md, "Configuration").
struct RunConfig {
  std::string file;  ///< "": there is none
  /// The places of the keys that it has, "FILE:LINE".
  std::map<std::string, std::string, std::less<>> places;
  /// As the options with these names.
  std::optional<std::string> network, home, profile, timeout, memory, cpu_time,
      disk;
  std::optional<uint64_t> pids, files;
  std::vector<std::string> hide, show, rw, env, validators;
  std::optional<Settle> on_success, on_failure;
  std::optional<bool> strict, may_nest;
};

/// Parses the file of a user. EINVAL with "FILE:LINE: what is wrong; what is
/// expected".
Result<RunConfig> ParseRunConfig(std::string_view text,
                                 const std::string& file);
/// As ParseRunConfig, for the file of the workspace `workspace`, which may only
/// restrict a run.
Result<RunConfig> ParseWorkspaceRunConfig(std::string_view text,
                                          const std::string& file,
                                          const std::string& workspace);

/// Reads config.toml of the user's configuration. Errors as ReadConfigFile, but
/// for ENOENT, and ParseRunConfig.
Result<RunConfig> ReadRunConfig();
/// Reads .txfs/config.toml of `workspace`, beneath mounts over it. Errors as
/// policy::ReadSource and ParseWorkspaceRunConfig.
Result<RunConfig> ReadWorkspaceRunConfig(const std::string& workspace);

/// Restricts `arguments` by the file of the workspace; adds what it has changed
/// to arguments.configuration.
void Restrict(const RunConfig& workspace, RunArguments& arguments);

}  // namespace txfs::cli
