#pragma once

#include <string>
#include <utility>
#include <vector>

namespace txfs::cli {

/// The environment of a run, and the names that were left out.
struct Environment {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> dropped;
};

/// Takes the variables of `environ` but those whose names or values look like
/// secrets, or that lead to services of the session. `given`: NAME passes a
/// variable all the same, NAME=VALUE sets one. `sandboxed`: the directory for
/// temporary files is /tmp, since another may not be there.
Environment MakeEnvironment(const char* const* environ,
                            const std::vector<std::string>& given,
                            bool sandboxed);

}  // namespace txfs::cli
