#pragma once

#include <string>

namespace txfs::cli {

/// The text for uid_map or gid_map of a new user namespace that maps each id
/// of this process's user namespace to itself. `map`: "uid_map" or "gid_map".
/// A user namespace cannot map more: that of a container has only some ids.
[[nodiscard]] std::string IdentityMap(const char* map);

}  // namespace txfs::cli
