#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/workspace/calls.h"

namespace txfs::cli {

/// The lines of `txfs log --calls`.
class CallTable {
 public:
  explicit CallTable(const std::vector<Call>& calls);

  /// Of one of the calls, whatever bytes its mark has. Names its session if
  /// there are several, and its subagent: by as much of the id as tells it
  /// apart.
  [[nodiscard]] std::string Line(const Call& call) const;

 private:
  size_t session_ = 0, agent_ = 0;  ///< bytes of the ids; 0: not shown
};
/// The form of `log --calls --json` (txfs(1)).
[[nodiscard]] Document CallDocument(const Call& call);
/// The line above the operations of a call; 0: of none. `mark`: its mark, if
/// that is known.
[[nodiscard]] std::string CallHeading(uint64_t number, const CallMark* mark);

}  // namespace txfs::cli
