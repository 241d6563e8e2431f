#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "fs/base/base_directory.h"
#include "fs/base/base_mounts.h"

namespace txfs {

/// Tells `visit` of each name outside `except`, as a base path, that one of
/// `inos` has on `mount`, until it returns false. Walks all of that mount:
/// for hard links whose other names nobody looked up, and for files that others
/// moved. `visit` may take what it needs no more out of `inos`.
void WalkNames(const BaseDirectory& base, const BaseMounts& mounts,
               const std::string& mount, const std::set<uint64_t>& inos,
               const std::set<std::string>& except,
               const std::function<bool(uint64_t, std::string)>& visit);

/// One such name of each that has any, by st_ino.
std::map<uint64_t, std::string> FindOtherNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except);

}  // namespace txfs
