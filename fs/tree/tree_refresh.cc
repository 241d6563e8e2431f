#include <cerrno>

#include "fs/tree/tree.h"

namespace txfs {

Result<std::optional<BaseObject>> FindObject(const BaseDirectory& base,
                                             const std::string& path) {
  auto st = base.Stat(path);
  if (!st && st.error().code == ENOENT) return std::nullopt;
  BaseObject object{path, TRY(std::move(st)), {}};
  if (S_ISLNK(object.st.st_mode)) {
    object.symlink = TRY(base.ReadLink(path, object.st.st_ino));
  }
  return object;
}

Tree::Look LookAt(const BaseDirectory& base) {
  return [&base](const std::string& path) {
    return FindObject(base, path).value_or(std::nullopt);
  };
}

void Tree::Revise(Inode& inode, const BaseObject& object) {
  SetRecord(inode, RecordOf(object));
  inode.base_blocks = static_cast<uint64_t>(object.st.st_blocks);
}

bool Tree::Differs(const Inode& inode, const BaseObject& object) const {
  InodeRecord record = RecordOf(object);
  record.attr.atime = inode.attr().atime;
  return inode.record != record;
}

bool Tree::IsOrigin(const Inode& inode, const struct stat& st) const {
  const auto& origin = inode.record.base;
  return origin && origin->dev == RelativeDevice(st.st_dev) &&
         origin->ino == st.st_ino &&
         TypeOfMode(st.st_mode) == inode.attr().type;
}

void Tree::DropCached(Inode& directory, const std::string& name) {
  Inode* child = directory.CachedChild(name);
  if (child != nullptr) DropLink(*child, {directory.ino, name});
}

void Tree::DropLink(Inode& child, const Inode::Link& link) {
  Inode& directory = *Find(link.parent);
  // The name may lead to another inode.
  if (directory.CachedChild(link.name) == &child) {
    directory.Uncache(link.name);
    ++directory.names.Make().version;
  }
  RemoveLink(child, link.parent, link.name);
  const bool changed = child.upper && !child.IsOrphan();
  if (changed || !child.links.empty()) return;
  UnindexBase(child);
  child.MakeOrphan();
  MaybeEvict(child.ino);
}

void Tree::SetLost(Inode& inode, bool lost, std::vector<Ino>& stale) {
  if (!lost) inode.sought = false;
  if (inode.lost == lost) return;
  inode.lost = lost;
  stale.push_back(inode.ino);
}

void Tree::DropUnheld() {
  std::vector<Ino> unheld;
  for (const Inode* inode : inodes_.All()) {
    if (!inode->upper && inode->lookups == 0) unheld.push_back(inode->ino);
  }
  for (const Ino ino : unheld) MaybeEvict(ino);
}

}  // namespace txfs
