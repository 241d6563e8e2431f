#pragma once

#include <string>
#include <string_view>

namespace txfs::cli {

/// How the names of the control groups of runs begin.
inline constexpr std::string_view kRunGroupPrefix = "txfs-run-";

/// The group in the control group of a run that has its processes. To them it
/// is the topmost one: the limits are above, so that nothing that they may
/// mount shows those.
inline constexpr std::string_view kRunGroupInner = "/processes";

/// Ends what is still in the control group of a run, and removes it. Does
/// nothing if `path` is no control group with the name of one of a run.
void RemoveRunGroup(const std::string& path);

}  // namespace txfs::cli
