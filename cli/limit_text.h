#pragma once

#include <string>
#include <vector>

#include "cli/json.h"
#include "fs/commit_limits.h"
#include "journal/base/result.h"

namespace txfs::cli {

/// A line on stderr for each that does not stop the commit.
void SayExceeded(const std::vector<LimitExcess>& limits);
/// That nothing `verb` ("was", "would be") committed, and why: kVetoed. At
/// least one of `limits` stops the commit.
std::unexpected<Error> LimitError(const std::string& verb,
                                  const std::vector<LimitExcess>& limits);
/// An array of objects with id, of, count, total, allowance, accepted, ...
[[nodiscard]] Document LimitDocuments(const std::vector<LimitExcess>& limits);

}  // namespace txfs::cli
