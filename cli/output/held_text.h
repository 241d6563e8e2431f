#pragma once

#include <string>

#include "cli/output/json.h"
#include "fs/planning/held.h"

namespace txfs::cli {

/// "2 changes are held for review": those that are not accepted.
[[nodiscard]] std::string HeldCount(const HeldReport& held);
enum class HeldLines : bool { kLeftOut, kShown };
/// Lines on stderr for each change that is held and not accepted: path, rule,
/// reason, and the lines that matter.
void SayHeld(const HeldReport& held, HeldLines lines = HeldLines::kShown);
/// Lines on stderr about what a commit did with what was held.
void SayHeldOutcome(const HeldReport& held);
/// An array of objects with path, change, rule, reason, lines, accepted, ...
[[nodiscard]] Document HeldDocuments(const HeldReport& held);
/// Of those that are not in that array: objects with rule, open, accepted.
[[nodiscard]] Document HeldRestDocuments(const HeldReport& held);

}  // namespace txfs::cli
