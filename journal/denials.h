#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "journal/change.h"
#include "journal/rule_count.h"
#include "journal/support/types.h"

namespace txfs {

/// A logged change with its position.
struct LogEntry {
  Lsn lsn = kNoLsn;
  Change change;
  // A denial that was repeated is one entry, with the LSN of the last time.
  uint64_t count = 1;
  Timestamp first = {};  ///< time of the first; of another change zero
};

/// A rule of a policy that refused something.
struct DeniedRule {
  uint64_t policy = 0;  ///< as in Change
  std::string rule;
  std::string reason, suggest;  ///< as they were when it first did
  uint64_t count = 0;           ///< how often
  Timestamp first, last;

  bool operator==(const DeniedRule&) const = default;
};

/// What is known of the operations that policies refused.
struct Denials {
  /// The ones that came last, each once, the newest at the end; with texts.
  std::vector<LogEntry> entries;
  std::vector<DeniedRule> rules;  ///< by policy, then by id

  /// How many operations are counted, but no entry is about them any more.
  [[nodiscard]] uint64_t Dropped() const;
  /// By id; several policies may have had a rule of one id.
  [[nodiscard]] std::vector<RuleCount> CountByRule() const;
};

/// Whether a policy refused it.
[[nodiscard]] inline bool IsDenial(const Change& change) {
  return change.result != 0 && change.policy != 0 && !change.rule.empty();
}

}  // namespace txfs
