#pragma once

#include <span>
#include <string>
#include <vector>

#include "policy/rule.h"

namespace txfs::policy {

/// Something about a rule that is no error, and hardly meant.
struct Warning {
  Place place;
  std::string message;
};

/// What is certain to be without effect, or without proof: rules that never
/// match, that another one always decides before, that have no examples. In the
/// order of the rules.
std::vector<Warning> Lint(std::span<const Rule> rules);

}  // namespace txfs::policy
