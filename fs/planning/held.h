#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/planning/selection.h"
#include "journal/support/result.h"

namespace txfs {

/// A change that a rule at the commit holds.
struct HeldChange {
  std::string path;
  std::string old_path = {};  ///< moved: the path before; else empty
  std::string change;         ///< "added", "changed", "removed", "attributes"
  std::string rule;           ///< id
  std::string reason, suggest;
  /// The first of the lines that matter, shortened; none of what is no text.
  std::vector<std::string> lines = {};
  uint64_t more_lines = 0;  ///< that are not in `lines`
  bool accepted = false;    ///< by the user (`--accept`)
};

/// Held changes that a report does not list.
struct HeldRest {
  std::string rule;       ///< id
  uint64_t open = 0;      ///< that are not accepted
  uint64_t accepted = 0;  ///< by the user
};

/// What a commit holds: the first changes of each rule.
struct HeldReport {
  std::vector<HeldChange> changes;  ///< by path; those that stop it first
  std::vector<HeldRest> more = {};  ///< that are not in `changes`, by rule
  bool left = false;  ///< the commit leaves them in the transaction

  [[nodiscard]] bool any() const { return !changes.empty(); }
  /// Whether nothing may be committed.
  [[nodiscard]] bool stops() const {
    return !left && any() && !changes.front().accepted;
  }
};

/// What users have accepted, and all that is held.
struct HeldQuery {
  const std::vector<std::string>& rules;  ///< ids of accepted rules or limits
  /// What is at or below these paths is accepted.
  const std::vector<std::string>& paths;
  /// The report has all, and of what no patch shows all lines that matter.
  bool whole = false;
};

/// The changes of `selection` (null: everything) that rules at the commit hold,
/// by what the base would get. Adds to `open`, if it is not null, all paths of
/// those that are not accepted. Not held is a new file without content. Error
/// (kUsage) if nothing is held at one of the accepted paths.
Result<HeldReport> FindHeld(Frozen& frozen, const Selection* selection,
                            const HeldQuery& query,
                            std::set<std::string>* open = nullptr);

}  // namespace txfs
