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
  // The number of denials that this entry stands for; `lsn` is that of the
  // last.
  uint64_t count = 1;
  Timestamp first = {};  ///< time of the first denial; zero for other changes
  std::string run = {};  ///< of `txfs run`; not stored here; may be ""
  uint64_t call = 0;     ///< number of the call; not stored here; 0: none
};

/// A rule of a policy that refused operations.
struct DeniedRule {
  uint64_t policy = 0;  ///< as in Change
  std::string rule;
  std::string reason, suggest;  ///< as at its first denial
  uint64_t count = 0;           ///< operations refused
  Timestamp first, last;

  bool operator==(const DeniedRule&) const = default;
};

/// What the journal keeps about the operations that policies refused.
struct Denials {
  /// The last ones, equal ones merged, the newest at the end; with texts.
  std::vector<LogEntry> entries;
  std::vector<DeniedRule> rules;  ///< by policy, then by id

  /// How many denials are counted but have no entry any longer.
  [[nodiscard]] uint64_t Dropped() const;
  /// By id; several policies may have had a rule with the same id.
  [[nodiscard]] std::vector<RuleCount> CountByRule() const;
};

/// Whether a policy refused `change`.
[[nodiscard]] inline bool IsDenial(const Change& change) {
  return change.result != 0 && change.policy != 0 && !change.rule.empty();
}

}  // namespace txfs
