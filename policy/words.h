#pragma once

#include <span>
#include <string>
#include <string_view>

#include "policy/limit.h"
#include "policy/rule.h"

namespace txfs::policy {

/// The noun for what `measure` counts: "files and directories", "content".
[[nodiscard]] std::string_view ThingsOf(Measure measure);

/// Describes, as Markdown, what `rules` and `limits` refuse, for the agents and
/// users to whom they apply. Leaves out exceptions for programs and users,
/// which would show a way around a rule. `exec_rules`: the number of rules
/// about commands, which refuse nothing in the workspace.
[[nodiscard]] std::string InWords(std::span<const Rule> rules,
                                  std::span<const Limit> limits,
                                  size_t exec_rules = 0);

}  // namespace txfs::policy
