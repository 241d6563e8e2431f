#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/limit.h"
#include "policy/rule.h"

namespace txfs::policy {

/// Something about a rule or a limit that is no error, and hardly meant.
struct Warning {
  Place place;
  std::string message;
};

/// What is certain to be without effect, or without proof: rules that never
/// match, that another one always decides before, that have no examples; limits
/// that count nothing, or allow no less than another one of the same. In the
/// order of the rules, then of the limits.
std::vector<Warning> Lint(std::span<const Rule> rules,
                          std::span<const Limit> limits = {});

}  // namespace txfs::policy
