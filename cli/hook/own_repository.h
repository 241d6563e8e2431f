#pragma once

#include <string>
#include <string_view>

namespace txfs::cli {

/// What a command of git does with the index.
struct GitIndexUse {
  bool writes_index = false;  ///< so it may run a hook
  /// Commands before it may have added submodules.
  bool index_changes = false;
};

/// Whether git, started in `directory`, works on no repository, or on one that
/// runs nothing and leads nowhere: in a directory .git, as git makes it, with
/// settings that git and its companions write themselves, without hooks, and
/// without submodules, which have settings of their own.
[[nodiscard]] bool IsOwnRepository(const std::string& directory,
                                   const GitIndexUse& use);

/// Whether git may follow the file `path`: it is in a directory .git, or its
/// name makes its directory a repository.
[[nodiscard]] bool IsOfGit(std::string_view path);

}  // namespace txfs::cli
