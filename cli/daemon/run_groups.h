#pragma once

#include <string>
#include <string_view>

namespace txfs::cli {

/// How the names of the control groups of runs begin.
inline constexpr std::string_view kRunGroupPrefix = "txfs-run-";

/// Ends what is still in the control group of a run, and removes it. Does
/// nothing if `path` is no control group with the name of one of a run.
void RemoveRunGroup(const std::string& path);

}  // namespace txfs::cli
