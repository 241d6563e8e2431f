#pragma once

#include <string>

namespace txfs::cli {

/// Whether git, started in `directory`, works on a repository in a directory
/// .git, as git makes it, or on none, so that the [[fs]] rules hold its
/// settings. `writes_index`: and runs no hook when it writes the index or
/// commits.
[[nodiscard]] bool IsOwnRepository(const std::string& directory,
                                   bool writes_index);

}  // namespace txfs::cli
