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

/// A limit, judged at commit, that a commit exceeds.
struct LimitExcess {
  std::string id;
  policy::Measure of = policy::Measure::kBaseRemoved;
  uint64_t count = 0;             ///< of the commit
  std::optional<uint64_t> total;  ///< of the base, if the limit needs it
  std::string allowance;          ///< policy::AllowanceOf
  std::string reason, suggest;
  bool refuses = true;    ///< action deny; else it is only reported
  bool accepted = false;  ///< by the user (`--accept`)

  [[nodiscard]] bool stops() const { return refuses && !accepted; }
};

/// The limits that a commit of `selection` (null: everything) would exceed. If
/// one of them stops, nothing may be committed. `accepted`: ids of limits that
/// may be exceeded, and of rules at the commit (FindHeld); kUsage if one is
/// neither.
/// `drifted`: the base has changed under the transaction. Counts:
/// - base_removed: base paths that the commit would remove;
/// - inodes_made and bytes_written: new objects and content.
///
/// Reads the whole base if a limit needs that.
Result<std::vector<LimitExcess>> JudgeCommit(
    Frozen& frozen, const Selection* selection, bool drifted,
    const std::vector<std::string>& accepted);

/// Whether one of `limits` stops the commit.
[[nodiscard]] bool AnyStops(const std::vector<LimitExcess>& limits);

}  // namespace txfs
