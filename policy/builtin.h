#pragma once

#include <string_view>

#include "journal/support/bytes.h"

namespace txfs::policy {

/// The name of the built-in rules in messages.
inline constexpr std::string_view kBuiltinName = "built-in";

/// The id of the rule for txfs's own names (OwnNames), which every mount has in
/// addition to its policy.
inline constexpr std::string_view kOwnNamesId = "txfs-own-names";

/// The text of policy/default.toml.
[[nodiscard]] std::string_view BuiltinText();

/// The same, parsed when txfs was built and without its examples, for
/// DecodeNode.
[[nodiscard]] ByteSpan FrozenRules();

}  // namespace txfs::policy
