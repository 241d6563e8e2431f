#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fs/base_directory.h"
#include "journal/base/result.h"

namespace txfs {

/// Base paths of files by st_ino, for those of `inos` that have a name outside
/// `except`. Walks the whole base, which only the removal of a hard link asks
/// for whose other names nobody looked up.
Result<std::map<uint64_t, std::string>> FindOtherNames(
    const BaseDirectory& base, const std::set<uint64_t>& inos,
    const std::set<std::string>& except);

}  // namespace txfs
