#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/exec_rule.h"
#include "policy/limit.h"
#include "policy/rule.h"

namespace txfs::policy {

/// A rule, limit or rule about commands that is valid but probably a mistake.
struct Warning {
  Place place;
  std::string message;
};

/// Reports, with certainty: rules that never decide because another rule always
/// does; rules without examples; limits that count nothing; limits that are
/// exceeded only if another limit on the same objects is, too. In the order of
/// the rules, then of the limits, then of the rules about commands.
std::vector<Warning> Lint(std::span<const Rule> rules,
                          std::span<const Limit> limits = {},
                          std::span<const ExecRule> exec_rules = {});

}  // namespace txfs::policy
