#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "fs/base/base_directory.h"
#include "fs/base/base_mounts.h"

namespace txfs {

/// Walks the whole filesystem at `mount`, and calls `visit` with each base path
/// outside `except` whose st_ino is one of `inos`, until it returns false.
/// Finds hard links that no lookup has found, and files that other processes
/// moved. `visit` may remove elements of `inos`.
void WalkNames(const BaseDirectory& base, const BaseMounts& mounts,
               const std::string& mount, const std::set<uint64_t>& inos,
               const std::set<std::string>& except,
               const std::function<bool(uint64_t, std::string)>& visit);

/// One such path for each st_ino that has any.
std::map<uint64_t, std::string> FindOtherNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except);

}  // namespace txfs
