#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/mount/mount_arguments.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// The name under which mount(8) calls this program.
inline constexpr std::string_view kMountHelper = "mount.fuse.txfs";

/// `SOURCE TARGET [-sfnv] [-o OPTIONS] [-t TYPE] [-N NAMESPACE]`.
struct MountHelperCall {
  MountArguments arguments;
  bool fake = false;     ///< -f: check the command line only
  bool verbose = false;  ///< -v: report what `txfs mount` reports
};
Result<MountHelperCall> ParseMountHelper(
    const std::vector<std::string>& arguments);

/// `all`: the command line, the program's name first.
Result<int> RunMountHelper(const std::vector<std::string>& all);

}  // namespace txfs::cli
