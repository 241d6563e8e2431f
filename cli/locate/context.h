#pragma once

#include <optional>
#include <string>
#include <vector>

namespace txfs::cli {

/// The values of the global options.
struct Context {
  std::string directory;             ///< working directory, after every -C
  std::optional<std::string> store;  ///< --store, absolute
  std::optional<std::string> transaction;  ///< -t: name, id or part of an id
  std::vector<std::string> trailing;       ///< arguments after the first "--"
};

}  // namespace txfs::cli
