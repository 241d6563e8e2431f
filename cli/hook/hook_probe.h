#pragma once

#include <string>
#include <vector>

#include "cli/run/probe.h"

namespace txfs::cli {

/// Reads where each hook is installed for the user, or for the project
/// `directory`, as its host does, calls it, and compares its answer with that
/// of this program. A hook that fails is a note: `txfs run` works all the same.
[[nodiscard]] std::vector<Probe> ProbeHooks(const std::string& directory);

}  // namespace txfs::cli
