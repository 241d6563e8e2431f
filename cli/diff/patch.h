#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/diff/diff_format.h"
#include "cli/diff/file_change.h"

namespace txfs::cli {

/// Takes a piece of a patch; returns false to stop.
using PatchSink = std::function<bool(LineStyle style, std::string_view text)>;

/// Writes the changes as a patch for `git apply`, with one file or a few small
/// ones in memory at a time. What git cannot express is in lines that begin
/// with "# txfs: ".
Status WritePatch(const std::vector<FileChange>& changes,
                  const ContentReader& read, const PatchSink& sink);

/// The rows of --stat for the patch that WritePatch writes.
Result<std::vector<StatRow>> StatRows(const std::vector<FileChange>& changes,
                                      const ContentReader& read);

}  // namespace txfs::cli
