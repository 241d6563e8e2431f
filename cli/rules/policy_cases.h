#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"
#include "policy/explain.h"

namespace txfs::cli {

/// What somebody expects rules to say.
struct PolicyCase {
  uint32_t line = 0;
  policy::Proposal proposal;
  policy::Action expected = policy::Action::kAllow;
  std::string rule;  ///< or limit, that is to decide; empty: any
  /// How much the limits that it counts towards have counted, with it; none:
  /// they are not asked.
  std::optional<uint64_t> count;
  std::optional<uint64_t> total;  ///< how much of that the base has
};

/// Reads cases, a JSON object a line (txfs(1)); empty lines are none. EINVAL
/// with "FILE:LINE: what is wrong; what is expected".
Result<std::vector<PolicyCase>> ParsePolicyCases(std::string_view text,
                                                 const std::string& file);

/// Why `rules` do not meet the case; "" when they do.
std::string FailureOf(const PolicyCase& one, const policy::Policy& rules);

}  // namespace txfs::cli
