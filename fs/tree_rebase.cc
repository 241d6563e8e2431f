#include <algorithm>

#include "fs/tree.h"

namespace txfs {

std::optional<std::string> Tree::VisibleBase(const std::string& path) const {
  if (path.empty()) return "";
  const std::string parent(ParentPath(path));
  const std::string_view name = BaseName(path);
  std::optional<std::string> above;
  if (const Inode* directory = FindBaseDirectory(parent)) {
    const auto slot = directory->slots.find(name);
    if (slot != directory->slots.end() &&
        slot->second.upper.kind != DentryKind::kAbsent) {
      return std::nullopt;
    }
    above = VisiblePath(*directory);
  } else {
    above = VisibleBase(parent);
  }
  if (!above) return std::nullopt;
  return JoinPath(*above, name);
}

std::optional<std::string> Tree::VisiblePath(const Inode& inode) const {
  if (inode.ino == kRootIno) return "";
  if (inode.IsOrphan()) return std::nullopt;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr) continue;
    if (auto above = VisiblePath(*parent)) return JoinPath(*above, link.name);
  }
  if (!inode.record.base) return std::nullopt;
  return VisibleBase(inode.record.base->path);
}

std::vector<std::string> Tree::VisiblePaths(const Inode& inode) const {
  std::vector<std::string> paths;
  if (inode.IsOrphan()) return paths;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr) continue;
    if (auto above = VisiblePath(*parent)) {
      paths.push_back(JoinPath(*above, link.name));
    }
  }
  if (paths.empty()) {
    if (auto path = VisiblePath(inode)) paths.push_back(std::move(*path));
  }
  return paths;
}

Inode* Tree::ObtainBaseDirectory(const std::string& path, const Look& look) {
  if (path.empty()) return &root();
  if (Inode* known = FindBaseDirectory(path)) return known;
  Inode* parent = ObtainBaseDirectory(std::string(ParentPath(path)), look);
  if (parent == nullptr) return nullptr;
  auto object = look(path);
  if (!object || !S_ISDIR(object->st.st_mode)) return nullptr;
  return &AdoptBase(*parent, BaseName(path), *object);
}

bool Tree::PlaceSurvivor(const Survivor& survivor, Inode& inode,
                         const Look& look) {
  for (const std::string& path : survivor.paths) {
    Inode* parent = ObtainBaseDirectory(std::string(ParentPath(path)), look);
    if (parent == nullptr) continue;
    if (inode.links.empty() && survivor.unchanged) {
      inode.record.base->path = path;
    } else if (inode.links.empty()) {
      auto object = look(path);
      // An inode does not change its type while the kernel holds it.
      if (!object || AttrOf(object->st).type != inode.attr().type) continue;
      inode.record = RecordOf(*object);
      inode.base_blocks = static_cast<uint64_t>(object->st.st_blocks);
    }
    parent->slots[std::string(BaseName(path))].cached = inode.ino;
    AddLink(inode, parent->ino, BaseName(path));
    IndexBase(inode);
  }
  return !inode.links.empty();
}

void Tree::Rebase(const std::vector<Survivor>& survivors, const Look& look,
                  const std::shared_ptr<Journal>& old) {
  std::unordered_map<Ino, std::unique_ptr<Inode>> before;
  before.swap(inodes_);
  base_files_.clear();
  base_directories_.clear();
  for (const Survivor& survivor : survivors) {
    inodes_[survivor.ino] = std::move(before[survivor.ino]);
  }
  for (auto& [ino, inode] : inodes_) {
    inode->slots.clear();
    inode->links.clear();
    inode->known_children = 0;
    inode->upper = false;
    inode->lost = false;
    ++inode->version;
  }
  IndexBase(root());
  for (const Survivor& survivor : survivors) {
    Inode& inode = *Find(survivor.ino);
    if (survivor.ino == kRootIno) {
      if (auto object = look("")) inode.record = RecordOf(*object);
    } else if (!PlaceSurvivor(survivor, inode, look)) {
      inode.attr().nlink = 0;
      if (!inode.extents.empty() && !inode.retired) inode.retired = old;
      inode.orphan_segment = 0;
      inode.orphan_end = 0;
      continue;
    }
    inode.extents.clear();
    inode.xattrs.clear();
    inode.stored_bytes = inode.own_end = 0;
  }
}

}  // namespace txfs
