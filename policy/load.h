#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"
#include "policy/limit.h"
#include "policy/rule.h"
#include "policy/settings.h"

namespace txfs::policy {

/// What a policy file says.
struct Loaded {
  std::string version;  ///< policy_version; may be empty
  std::vector<Rule> rules;
  std::vector<Limit> limits;
  Settings settings;
  uint64_t hash = 0;  ///< xxh3-64 of the text
};

/// What an example of `rule` means: the program is not known, the layer is the
/// rule's, or the base, and the type that of its op, the rule's, or a file. A
/// rename is about what goes; of a rule about what comes, only, about that.
[[nodiscard]] Event EventOf(const Example& example, const Rule& rule);

/// Reads a policy file (docs/policy.md) whose text is `text`. EINVAL with
/// "FILE:LINE: what is wrong; what is expected": not TOML, a key that means
/// nothing, a value of another type, an empty reason, an id that is taken, a
/// pattern that is none, an example that the rule does not do justice to.
Result<Loaded> Load(std::string_view text, const std::string& file);

}  // namespace txfs::policy
