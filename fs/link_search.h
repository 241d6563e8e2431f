#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fs/base_directory.h"
#include "fs/base_mounts.h"
#include "journal/base/result.h"

namespace txfs {

/// Base paths of files on `mount` by st_ino, for those of `inos` that have a
/// name outside `except`. Walks all of that mount, which only the removal of a
/// hard link asks for whose other names nobody looked up.
Result<std::map<uint64_t, std::string>> FindOtherNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except);

/// The same with all names that they have there.
std::multimap<uint64_t, std::string> FindAllNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except);

}  // namespace txfs
