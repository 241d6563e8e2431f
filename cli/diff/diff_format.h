#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/diff/file_change.h"
#include "cli/output/json.h"

namespace txfs::cli {

/// A line of --name-status in git's format, with a newline; with `nul` in the
/// format of -z.
[[nodiscard]] std::string NameStatusLine(const FileChange& change, bool nul);

/// An element of the --json array (txfs(1)).
[[nodiscard]] Document ChangeDocument(const FileChange& change);

/// Passes the --json array to `write` in pieces, of which one is in memory.
void WriteJsonArray(const std::vector<FileChange>& changes,
                    const std::function<void(std::string_view)>& write);

/// A row of --stat.
struct StatRow {
  std::string name;
  GitLineCounts lines;
  uint64_t old_size = 0, new_size = 0;  ///< shown for binary files
  bool closed = false;                  ///< the content cannot be read
};
[[nodiscard]] std::string StatName(const FileChange& change);
/// The table, at most `columns` wide, and the line of totals.
[[nodiscard]] std::string StatTable(const std::vector<StatRow>& rows,
                                    size_t columns);

/// `text` with the colours of a patch.
[[nodiscard]] std::string Coloured(LineStyle style, std::string_view text);

}  // namespace txfs::cli
