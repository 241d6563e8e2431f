#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace txfs::policy {

/// A hypothetical operation.
struct Proposal {
  Op op = Op::kWrite;
  std::string path;
  std::string new_path = {};   ///< for rename, exchange and link; may be empty
  Layer layer = Layer::kBase;  ///< of the existing object
  std::optional<Type> type = {};  ///< none: what the op makes, else a file
  std::string exe = {};           ///< empty: unknown
  std::optional<uint32_t> uid = {};
};

/// The events of `proposal` on the names that it has, in the order in which
/// they are judged: a link makes the new name, a rename replaces the object of
/// the new name. Names below these and other hard links of a file are not
/// included. The views are into `proposal`.
std::vector<Event> EventsOf(const Proposal& proposal);

/// A rule that matches one of the names.
struct Match {
  const Rule* rule;
  std::string path;
};

struct Explanation {
  Verdict verdict;                   ///< the strongest; of equal ones the first
  std::vector<Match> matches;        ///< all rules, each name once
  std::vector<const Limit*> limits;  ///< towards which the operation counts
};

/// Whether the operation, if carried out, counts towards `limit`. Assumes that
/// a removed object has no other name.
[[nodiscard]] bool CountsTowards(const Proposal& proposal, const Limit& limit);

/// Explains what `policy`, which must outlive the explanation, does about
/// `proposal`.
Explanation Explain(const Policy& policy, const Proposal& proposal);

}  // namespace txfs::policy
