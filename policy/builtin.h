#pragma once

#include <string_view>

namespace txfs::policy {

/// What the rules that are built in are called in messages.
inline constexpr std::string_view kBuiltinName = "built-in";

/// The id of what every mount refuses, with whatever rules: names of txfs's own
/// (OwnNames).
inline constexpr std::string_view kOwnNamesId = "txfs-own-names";

/// The text of policy/default.toml.
[[nodiscard]] std::string_view BuiltinText();

}  // namespace txfs::policy
