#pragma once

#include <string>

#include "cli/run/sandbox.h"

namespace txfs::cli {

/// Looks for the program `name` as a shell would in `sandbox`: by PATH, or as a
/// path if it has a slash. 0, or the exit code of a shell: 127 if it is not
/// there, 126 if it is not executable.
[[nodiscard]] int FindProgram(const Sandbox& sandbox, const std::string& name);

}  // namespace txfs::cli
