#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"
#include "policy/explain.h"

namespace txfs::cli {

/// An expectation of a policy.
struct PolicyCase {
  uint32_t line = 0;
  policy::Proposal proposal;
  policy::Action expected = policy::Action::kAllow;
  std::string rule;  ///< id of the deciding rule or limit; empty: any
  /// The count of the limits towards which the operation counts, including it;
  /// none: limits are not tested.
  std::optional<uint64_t> count;
  std::optional<uint64_t> total;  ///< the total of that in the base
};

/// Reads cases, one JSON object per line (txfs(1)); skips empty lines. EINVAL
/// with "FILE:LINE: what is wrong; what is expected".
Result<std::vector<PolicyCase>> ParsePolicyCases(std::string_view text,
                                                 const std::string& file);

/// Why `rules` fail the case; "" if they pass it.
std::string FailureOf(const PolicyCase& one, const policy::Policy& rules);

}  // namespace txfs::cli
