#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/host/mount_table.h"

namespace txfs {

/// An object of a filesystem, wherever that is mounted.
struct MountedObject {
  uint32_t major = 0, minor = 0;  ///< of the filesystem
  std::string path;               ///< in it, absolute
};

/// The mount in which a lookup of `path`, absolute, normal and without links,
/// ends: mounts over it or over a directory on the way count. Null if the table
/// does not have it.
const MountEntry* MountShownAt(const std::vector<MountEntry>& table,
                               const std::string& path);

/// What a lookup of `path`, absolute, normal and without links, leads to. None
/// if the table does not have its mount. The object need not exist.
std::optional<MountedObject> ObjectShownAt(const std::vector<MountEntry>& table,
                                           const std::string& path);

/// All paths at which `table` shows `object`, and those of the mounts that show
/// a part of it. Paths that a mount covers are left out. Another filesystem
/// that has the same content (an overlay over it) counts as another object.
std::vector<std::string> PlacesOf(const std::vector<MountEntry>& table,
                                  const MountedObject& object);

}  // namespace txfs
