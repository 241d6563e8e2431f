#include "fs/host/mounted_object.h"

#include <algorithm>
#include <string_view>

namespace txfs {
namespace {

/// `path`, which is `from` or below it, with `to` in the place of `from`.
std::string Rebased(std::string_view path, std::string_view from,
                    std::string_view to) {
  if (from != "/") path.remove_prefix(from.size());
  std::string moved(to == "/" && path.starts_with('/') ? "" : to);
  moved += path;
  if (moved.size() > 1 && moved.ends_with('/')) moved.pop_back();
  return moved;
}

/// Whether the mount that `entry` is mounted in is not in the table.
bool IsTop(const std::vector<MountEntry>& table, const MountEntry& entry) {
  return std::ranges::none_of(table, [&](const MountEntry& other) {
    return &other != &entry && other.mount_id == entry.parent_id;
  });
}

/// The mount on `above` that a lookup of `path` comes to first. `above`: null:
/// the begin of the lookup. Null if there is none.
const MountEntry* NextOnWay(const std::vector<MountEntry>& table,
                            const MountEntry* above, const std::string& path) {
  const MountEntry* next = nullptr;
  for (const MountEntry& entry : table) {
    const bool is_on =
        above == nullptr
            ? IsTop(table, entry)
            // A lookup begins in the root directory, not in what covers it.
            : &entry != above && entry.parent_id == above->mount_id &&
                  entry.mountpoint != "/";
    if (!is_on || !IsWithin(path, entry.mountpoint)) continue;
    if (next == nullptr || entry.mountpoint.size() <= next->mountpoint.size()) {
      next = &entry;
    }
  }
  return next;
}

}  // namespace

const MountEntry* MountShownAt(const std::vector<MountEntry>& table,
                               const std::string& path) {
  const MountEntry* mount = nullptr;
  // A table that was read while it changed may have a circle.
  for (size_t steps = 0; steps <= table.size(); ++steps) {
    const MountEntry* next = NextOnWay(table, mount, path);
    if (next == nullptr) break;
    mount = next;
  }
  return mount;
}

std::optional<MountedObject> ObjectShownAt(const std::vector<MountEntry>& table,
                                           const std::string& path) {
  const MountEntry* mount = MountShownAt(table, path);
  if (mount == nullptr) return std::nullopt;
  return MountedObject{.major = mount->major,
                       .minor = mount->minor,
                       .path = Rebased(path, mount->mountpoint, mount->root)};
}

std::vector<std::string> PlacesOf(const std::vector<MountEntry>& table,
                                  const MountedObject& object) {
  std::vector<std::string> places;
  for (const MountEntry& entry : table) {
    if (entry.major != object.major || entry.minor != object.minor) continue;
    std::string place;
    if (IsWithin(object.path, entry.root)) {
      place = Rebased(object.path, entry.root, entry.mountpoint);
    } else if (IsWithin(entry.root, object.path)) {
      place = entry.mountpoint;
    }
    if (!place.empty() && MountShownAt(table, place) == &entry) {
      places.push_back(std::move(place));
    }
  }
  return places;
}

}  // namespace txfs
