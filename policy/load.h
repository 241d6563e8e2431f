#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"
#include "policy/exec_rule.h"
#include "policy/limit.h"
#include "policy/node.h"
#include "policy/rule.h"
#include "policy/settings.h"

namespace txfs::policy {

/// The content of a policy file.
struct Loaded {
  std::string version;  ///< policy_version; may be empty
  std::vector<Rule> rules;
  std::vector<Limit> limits;
  std::vector<ExecRule> exec_rules;
  Settings settings;
  uint64_t hash = 0;  ///< xxh3-64 of the text
};

/// The event that an example of `rule` stands for. The program is unknown. The
/// layer is new for a name that is made, else the rule's, or the base. The type
/// is that of the op, else the rule's, or a file. A rename is about its old
/// name; if the rule is only about names that are made, about the new one.
[[nodiscard]] Event EventOf(const Example& example, const Rule& rule);

/// Parses and checks a policy file (docs/policy.md). EINVAL with "FILE:LINE:
/// what is wrong; what is expected": not TOML, an unknown key, a value of the
/// wrong type, an empty reason, a duplicate id, an invalid pattern, an example
/// that contradicts the rule.
Result<Loaded> Load(std::string_view text, const std::string& file);
/// The same of `text` that was parsed to `root`.
Result<Loaded> Load(const Node& root, std::string_view text,
                    const std::string& file);

}  // namespace txfs::policy
