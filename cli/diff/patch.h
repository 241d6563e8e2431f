#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/diff/diff_format.h"
#include "cli/diff/file_change.h"

namespace txfs::cli {

/// Takes a piece of a patch; returns false when it wants no more.
using PatchSink = std::function<bool(LineStyle style, std::string_view text)>;

/// The changes as a patch that `git apply` takes, one file in memory at a time.
/// What git cannot say is in lines that start with "# txfs: ".
Status WritePatch(const std::vector<FileChange>& changes,
                  const ContentReader& read, const PatchSink& sink);

/// The rows of --stat, of what WritePatch writes.
Result<std::vector<StatRow>> StatRows(const std::vector<FileChange>& changes,
                                      const ContentReader& read);

}  // namespace txfs::cli
