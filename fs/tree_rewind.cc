#include <set>

#include "fs/tree.h"

namespace txfs {
namespace {

std::set<Ino> TouchedBy(const Rewind& rewind) {
  std::set<Ino> touched;
  for (const auto& [ino, past] : rewind.inodes) touched.insert(ino);
  for (const auto& [ino, attr] : rewind.attrs) touched.insert(ino);
  for (const auto& [key, value] : rewind.dentries) touched.insert(key.first);
  for (const auto& [ino, rows] : rewind.extents) touched.insert(ino);
  for (const auto& [key, value] : rewind.xattrs) touched.insert(key.first);
  return touched;
}

void AppendExtents(const Inode& inode, std::vector<Extent>& to) {
  for (const auto& [offset, extent] : inode.extents) to.push_back(extent);
}

}  // namespace

/// What an orphan has, it has in memory only; it gets back what the journal
/// had.
void Tree::ReviveOrphan(Inode& inode, WentBack& went) {
  AppendExtents(inode, went.given_up);
  inode.extents.clear();
  inode.xattrs.clear();
  inode.stored_bytes = 0;
  inode.orphan_segment = 0;
  inode.orphan_end = 0;
  inode.pinned_base.reset();
  // The kernel takes nothing more from a directory that was removed, not even
  // when it is back: it must meet another one.
  if (inode.IsDirectory()) ++inode.generation;
}

void Tree::GoBackInode(Ino ino, const Rewind::PastInode& past, WentBack& went) {
  if (past.record) {
    if (Inode* inode = Find(ino); inode != nullptr && inode->IsOrphan()) {
      if (past.record->attr.nlink != 0) ReviveOrphan(*inode, went);
    }
    return SetInode(ino, past.record);
  }
  Inode* inode = Find(ino);
  if (inode == nullptr) return;
  SetUpper(*inode, false);
  if (!past.untouched.base) {
    // Made since: all that is left of it is what the kernel holds.
    if (!inode->IsOrphan() && inode->lookups > 0) {
      AppendExtents(*inode, went.kept);
    }
    inode->attr().nlink = 0;
    return;
  }
  if (inode->IsOrphan()) ReviveOrphan(*inode, went);
  UnindexBase(*inode);
  inode->record = past.untouched;
  IndexBase(*inode);
}

void Tree::GoBackAttr(Ino ino, const Attr& attr, WentBack& went) {
  Inode* inode = Find(ino);
  if (inode == nullptr) return;
  const bool returns = inode->IsOrphan() && attr.nlink != 0;
  if (returns) ReviveOrphan(*inode, went);
  inode->attr() = attr;
  if (returns) IndexBase(*inode);
}

void Tree::GoBackExtents(
    Inode& inode, const std::map<uint64_t, std::optional<Extent>>& rows) {
  ExtentEdit edit{.ino = inode.ino};
  for (const auto& [offset, extent] : rows) {
    const auto now = inode.extents.find(offset);
    if (now != inode.extents.end()) edit.before.push_back(now->second);
    if (extent) edit.after.push_back(*extent);
  }
  ReplaceExtents(inode, edit);
}

/// A base object whose only known name was one the transaction gave it is found
/// at its own again.
void Tree::RelinkBase(Inode& inode) {
  if (!inode.links.empty() || !inode.record.base || inode.IsOrphan()) return;
  RelinkBase(inode, inode.record.base->path);
}

void Tree::RelinkBase(Inode& inode, const std::string& path) {
  Inode* parent = FindBaseDirectory(ParentPath(path));
  if (path.empty() || parent == nullptr) return;
  const auto [slot, fresh] =
      parent->slots.try_emplace(std::string(BaseName(path)));
  if (!fresh) return;
  slot->second.cached = inode.ino;
  AddLink(inode, parent->ino, BaseName(path));
}

Tree::WentBack Tree::GoBack(const Rewind& rewind) {
  WentBack went;
  for (const auto& [ino, past] : rewind.inodes) GoBackInode(ino, past, went);
  for (const auto& [ino, attr] : rewind.attrs) GoBackAttr(ino, attr, went);
  for (const auto& [key, value] : rewind.dentries) {
    // What came and went since was never to be found.
    if (Find(key.first) != nullptr) SetDentry(key.first, key.second, value);
  }
  // Orphans keep what they have.
  for (const auto& [ino, rows] : rewind.extents) {
    Inode* inode = Find(ino);
    if (inode != nullptr && !inode->IsOrphan()) GoBackExtents(*inode, rows);
  }
  for (const auto& [key, value] : rewind.xattrs) {
    const Inode* inode = Find(key.first);
    if (inode != nullptr && !inode->IsOrphan()) {
      SetXattr(key.first, key.second, value);
    }
  }
  const std::set<Ino> touched = TouchedBy(rewind);
  for (const Ino ino : touched) {
    if (Inode* inode = Find(ino)) RelinkBase(*inode);
  }
  for (const Ino ino : touched) MaybeEvict(ino);
  for (const Ino ino : touched) {
    if (Find(ino) != nullptr) {
      went.changed.push_back(ino);
    } else {
      went.gone.push_back(ino);
    }
  }
  return went;
}

}  // namespace txfs
