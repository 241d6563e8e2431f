#pragma once

#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/planning/commit_limits.h"
#include "journal/support/result.h"
#include "policy/limit.h"

namespace txfs::cli {

/// A line on stderr for each that does not stop the commit.
void SayExceeded(const std::vector<LimitExcess>& limits);

/// What was asked for, as it is typed again, each word behind a space.
struct CommitCommand {
  std::string options;  ///< all but --accept
  std::string paths;    ///< behind "--"; or ""
};

/// That nothing `verb` ("was", "would be") committed, and why: kVetoed. At
/// least one of `limits` stops the commit. `again`: what was asked for.
std::unexpected<Error> LimitError(const std::string& verb,
                                  const std::vector<LimitExcess>& limits,
                                  const CommitCommand& again);
/// "commit", "operation" or "operation, within 10 s".
[[nodiscard]] std::string MomentText(const policy::Limit& limit);
/// As txfs(1) says of `policy show --json`. Without its exceptions: nobody is
/// to be told of a way around it.
[[nodiscard]] Document LimitDocument(const policy::Limit& limit);

/// An array of objects with id, of, count, total, allowance, accepted, ...
[[nodiscard]] Document LimitDocuments(const std::vector<LimitExcess>& limits);

}  // namespace txfs::cli
