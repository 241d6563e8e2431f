#pragma once

#include <string>
#include <vector>

#include "journal/support/result.h"

namespace txfs::cli {

/// Where a run works; absolute and without links.
struct RunPlaces {
  std::string workspace, mountpoint;
};

/// The paths that a run does not see: credentials, sockets of services, what
/// decides for txfs, the workspace's base and the caller's other txfs mounts,
/// each under all the names that the mount table gives it. Absolute and without
/// links; they need not exist. What lies in one of them is left out. The
/// workspace and what has the workspace in it may be among them: the
/// workspace's mount covers the first.
///
/// `hide` and `show`, absolute, change the list of credentials; what decides
/// for txfs is hidden in any case. ETIMEDOUT: the daemon of another mount of
/// the caller's hangs.
Result<std::vector<std::string>> HiddenPaths(
    const RunPlaces& places, const std::vector<std::string>& hide,
    const std::vector<std::string>& show);

}  // namespace txfs::cli
