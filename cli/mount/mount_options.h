#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs::cli {

/// The values of `-o`.
struct MountFlags {
  bool remount = false;
  std::optional<bool> read_only;
  bool allow_other = false;
  bool as_owner = false;
  std::optional<std::string> fsname;  ///< first column of the mount table
  std::optional<std::string> store;
  std::optional<std::string> name;    ///< of the transaction
  std::vector<std::string> policies;  ///< policy files
  bool no_default_policy = false;
  std::vector<std::string> without_rules;  ///< ids of built-in rules
  std::vector<std::string> kernel;  ///< noatime, suid, ...; later ones count

  bool operator==(const MountFlags&) const = default;
};

/// Adds a list in the format of mount(8) to `flags`; later options override
/// earlier ones; "\," is a comma in a value. Ignores options for mount(8),
/// fstab and systemd. kUsage for an unknown option.
Status ParseMountOptions(std::string_view list, MountFlags& flags);

}  // namespace txfs::cli
