#pragma once

#include <cstdint>
#include <string>

#include "cli/output/json.h"
#include "fs/workspace/calls.h"

namespace txfs::cli {

/// One line of `txfs log --calls`, whatever bytes the mark has.
[[nodiscard]] std::string CallLine(const Call& call);
/// The form of `log --calls --json` (txfs(1)).
[[nodiscard]] Document CallDocument(const Call& call);
/// The line above the operations of a call; 0: of none. `mark`: its mark, if
/// that is known.
[[nodiscard]] std::string CallHeading(uint64_t number, const CallMark* mark);

}  // namespace txfs::cli
