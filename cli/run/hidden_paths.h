#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"

namespace txfs::cli {

/// The paths that a run does not see: credentials, sockets of services, and
/// what decides for txfs. Those that are there, absolute and without links.
/// `home`: "" for none. `hide` and `show`, absolute, change the list; what
/// decides for txfs is hidden in any case.
Result<std::vector<std::string>> HiddenPaths(
    const std::string& home, const std::vector<std::string>& hide,
    const std::vector<std::string>& show);

}  // namespace txfs::cli
