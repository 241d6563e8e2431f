#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/planning/commit_limits.h"
#include "fs/planning/held.h"
#include "journal/support/result.h"
#include "policy/limit.h"

namespace txfs::cli {

/// Prints a line to stderr for each limit that does not stop the commit.
void SayExceeded(const std::vector<LimitExcess>& limits);

/// The words of a `txfs commit` command, each after a space, to repeat it.
struct CommitCommand {
  std::string options;   ///< all but --accept and --without-held
  std::string accepted;  ///< --accept
  std::string paths;     ///< after "--"; or ""
  bool without_held = false;
  bool resolves = false;  ///< conflicts, so that nothing can be left out
};

/// The error that nothing `verb` ("was", "would be") committed, with the
/// reasons: kVetoed. At least one of `limits`, or `held`, stops the commit.
/// `again`: the command.
std::unexpected<Error> StopError(const std::string& verb,
                                 const std::vector<LimitExcess>& limits,
                                 const HeldReport& held,
                                 const CommitCommand& again);
/// "commit", "operation" or "operation, within 10 s".
[[nodiscard]] std::string MomentText(const policy::Limit& limit);
/// The form of `policy show --json` (txfs(1)). Leaves out exceptions, which
/// would show a way around the limit.
[[nodiscard]] Document LimitDocument(const policy::Limit& limit);

/// An array of objects with id, of, count, total, allowance, accepted, ...
[[nodiscard]] Document LimitDocuments(const std::vector<LimitExcess>& limits);

}  // namespace txfs::cli
