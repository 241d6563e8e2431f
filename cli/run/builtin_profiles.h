#pragma once

#include <span>
#include <string_view>

namespace txfs::cli {

/// A file of cli/run/profiles.
struct BuiltinProfile {
  std::string_view name;  ///< without ".toml"
  std::string_view text;
};

/// In the order of their names.
[[nodiscard]] std::span<const BuiltinProfile> BuiltinProfiles();

}  // namespace txfs::cli
