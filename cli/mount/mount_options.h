#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs::cli {

/// What `-o` says.
struct MountFlags {
  bool read_only = false;
  bool allow_other = false;
  bool as_owner = false;
  std::optional<std::string> fsname;  ///< first column of the mount table
  std::optional<std::string> store;
  std::optional<std::string> name;    ///< of the transaction
  std::vector<std::string> policies;  ///< files of rules
  bool no_default_policy = false;
  std::vector<std::string> without_rules;  ///< ids of what is built in
  std::vector<std::string> kernel;         ///< noatime, nosuid, ...

  bool operator==(const MountFlags&) const = default;
};

/// Adds a list as mount(8) gives it to `flags`; later options override earlier
/// ones, "\," is a comma in a value. Options that are for mount(8), fstab or
/// systemd mean nothing here. kUsage for an unknown one.
Status ParseMountOptions(std::string_view list, MountFlags& flags);

}  // namespace txfs::cli
