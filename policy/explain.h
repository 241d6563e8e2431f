#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace txfs::policy {

/// An operation that somebody asks about.
struct Proposal {
  Op op = Op::kWrite;
  std::string path;
  std::string new_path = {};   ///< of rename, exchange and link; may be empty
  Layer layer = Layer::kBase;  ///< of what is there
  std::optional<Type> type = {};  ///< none: what the op makes, else a file
  std::string exe = {};           ///< empty: not known
  std::optional<uint32_t> uid = {};
};

/// What it does to the names that are told, in the order in which they are
/// judged: a link makes the new one, a rename replaces what has it. What may be
/// below them, and other names of a file, are not among them. The views are
/// into `proposal`.
std::vector<Event> EventsOf(const Proposal& proposal);

/// A rule that is about one of the names.
struct Match {
  const Rule* rule;
  std::string path;
};

struct Explanation {
  Verdict verdict;  ///< the first refusal, else the first that is noted
  std::vector<Match> matches;        ///< of all rules, each name once
  std::vector<const Limit*> limits;  ///< that it counts towards
};

/// Whether what is asked about counts towards `limit`, if it is done, and takes
/// the only name of what it removes.
[[nodiscard]] bool CountsTowards(const Proposal& proposal, const Limit& limit);

/// What `policy`, which must outlive the explanation, says of it.
Explanation Explain(const Policy& policy, const Proposal& proposal);

}  // namespace txfs::policy
