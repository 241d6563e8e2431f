#include "fs/overlay/crossings.h"

#include <optional>

namespace txfs {

bool Crossings::IsMountpoint(const Inode& directory, std::string_view name,
                             const Inode& inode) const {
  // A btrfs subvolume has a device of its own, and is not in the mount table.
  if (inode.IsDirectory() && inode.record.base &&
      inode.record.base->dev != tree_.DeviceOf(directory)) {
    return true;
  }
  const auto path = tree_.BasePathOf({directory.ino, std::string(name)});
  return path && mounts_.Of(*path) == *path;
}

bool Crossings::AreBindMounts(const Inode& a, const Inode& b) const {
  return a.ino != b.ino && tree_.DeviceOf(a) == tree_.DeviceOf(b) &&
         MountOf(a) != MountOf(b);
}

bool Crossings::MayLink(const Inode& file, const Inode& directory) const {
  if (file.orphan->unnamed) {
    return file.orphan->unnamed->device == tree_.DeviceOf(directory) &&
           file.orphan->unnamed->mount == MountOf(directory);
  }
  const Inode* parent =
      file.links.empty() ? nullptr : tree_.Find(file.links.front().parent);
  if (parent == nullptr) {
    const auto& base = file.record.base;
    return (base ? base->dev : 0) == tree_.DeviceOf(directory);
  }
  // The filesystem of the names may differ from that of the base object.
  if (tree_.DeviceOf(*parent) != tree_.DeviceOf(directory)) return false;
  // A single file may be a mount, too.
  const auto path = tree_.BasePathOf(file.links.front());
  return (path ? mounts_.Of(*path) : MountOf(*parent)) == MountOf(directory);
}

std::string Crossings::MountOf(const Inode& directory) const {
  const Inode* at = &directory;
  while (!at->record.base) {
    if (at->links.empty()) return "";
    at = tree_.Find(at->links.front().parent);
    if (at == nullptr) return "";
  }
  return mounts_.Of(at->record.base->path);
}

}  // namespace txfs
