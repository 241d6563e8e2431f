#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/planning/selection.h"
#include "journal/support/result.h"
#include "policy/limit.h"

namespace txfs {

/// A limit that is judged at commit, and that a commit exceeds.
struct LimitExcess {
  std::string id;
  policy::Measure of = policy::Measure::kBaseRemoved;
  uint64_t count = 0;             ///< what the commit would do
  std::optional<uint64_t> total;  ///< of what the base has; if it matters
  std::string allowance;          ///< policy::AllowanceOf
  std::string reason, suggest;
  bool refuses = true;    ///< else it is only told
  bool accepted = false;  ///< by whoever commits

  [[nodiscard]] bool stops() const { return refuses && !accepted; }
};

/// The limits that a commit of `selection` (null: of everything) would exceed:
/// with one that stops, nothing may be committed. `accepted`: ids of those that
/// may be; kUsage if one is of no limit that is judged at commit. Counted are
/// paths that the base has and would not have afterwards, and objects and
/// content that it would get. `drifted`: others changed what it
/// touched. Looks at all of the base where a limit needs that.
Result<std::vector<LimitExcess>> JudgeCommit(
    Frozen& frozen, const Selection* selection, bool drifted,
    const std::vector<std::string>& accepted);

/// Whether one of them stops the commit.
[[nodiscard]] bool AnyStops(const std::vector<LimitExcess>& limits);

}  // namespace txfs
