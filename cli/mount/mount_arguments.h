#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace txfs::cli {

/// How much history to keep; none: as in the mount.
struct KeepArguments {
  std::optional<uint64_t> commits, bytes;
};

/// The arguments of `txfs mount`.
struct MountArguments {
  std::optional<std::string> workspace, mountpoint;  ///< as given
  std::vector<std::string> options;                  ///< of -o
  std::optional<std::string> name;                   ///< --name
  bool foreground = false;
  bool allow_other = false;
  KeepArguments keep;
  std::vector<std::string> policies;  ///< --policy, the weakest first
  bool no_default_policy = false;
  std::vector<std::string> without_rules;  ///< ids of built-in rules
};

}  // namespace txfs::cli
