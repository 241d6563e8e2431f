#include <algorithm>
#include <vector>

#include "fs/tree/tree.h"

namespace txfs {
namespace {

std::vector<Ino> TouchedBy(const Rewind& rewind) {
  std::vector<Ino> touched;
  touched.reserve(rewind.inodes.size());
  for (const auto& past : rewind.inodes) touched.push_back(past.ino);
  for (const auto& [key, value] : rewind.dentries) touched.push_back(key.first);
  for (const auto& [key, value] : rewind.xattrs) touched.push_back(key.first);
  std::ranges::sort(touched);
  const auto repeated = std::ranges::unique(touched);
  touched.erase(repeated.begin(), repeated.end());
  return touched;
}

void AppendExtents(const Inode& inode, std::vector<Extent>& to) {
  for (const auto& [offset, extent] : inode.extents) to.push_back(extent);
}

}  // namespace

/// Replaces the state of an orphan, which is only in memory, by that of the
/// journal.
void Tree::ReviveOrphan(Inode& inode, WentBack& went) {
  AppendExtents(inode, went.given_up);
  inode.extents.clear();
  if (Inode::Own* own = inode.own.get()) {
    own->xattrs.Reset();
    own->stored_bytes = 0;
  }
  if (Inode::Orphan* orphan = inode.orphan.get()) {
    orphan->segment = 0;
    orphan->end = 0;
    orphan->last_path.clear();
    orphan->taken = false;
    orphan->pinned_base.reset();
  }
  // The kernel never uses a removed directory again: after its return the
  // kernel must see another generation.
  if (inode.IsDirectory()) ++inode.names.Make().generation;
}

void Tree::GoBackInode(const Rewind::PastInode& past, WentBack& went) {
  using Record = Rewind::PastInode::Record;
  Inode* inode = Find(past.ino);
  if (past.has == Record::kReturns) {
    if (inode == nullptr) {
      inode = &Obtain(past.ino);
    } else if (inode->IsOrphan() && past.record->attr.nlink != 0) {
      ReviveOrphan(*inode, went);
    }
    SetRecord(*inode, *past.record);
    SetUpper(*inode, true);
  } else if (inode == nullptr) {
    return;
  } else if (past.has == Record::kVanishes) {
    SetUpper(*inode, false);
    if (past.record && past.record->base) {
      if (inode->IsOrphan()) ReviveOrphan(*inode, went);
      SetRecord(*inode, *past.record);
    } else {
      // The inode was made since: only the kernel holds it.
      if (!inode->IsOrphan() && inode->lookups > 0) {
        AppendExtents(*inode, went.kept);
      }
      inode->MakeOrphan();
    }
  } else if (past.attr) {
    const bool returns = inode->IsOrphan() && past.attr->nlink != 0;
    if (returns) ReviveOrphan(*inode, went);
    inode->record.SetAttr(*past.attr);
    if (returns) IndexBase(*inode);
  }
  GoBackExtents(*inode, past);
}

/// Orphans keep their extents.
void Tree::GoBackExtents(Inode& inode, const Rewind::PastInode& past) {
  if (past.extents.empty() || inode.IsOrphan()) return;
  ExtentEdit edit{.ino = inode.ino};
  for (const auto& [offset, extent] : past.extents) {
    const auto now = inode.extents.find(offset);
    if (now != inode.extents.end()) edit.before.push_back(now->second);
    if (extent) edit.after.push_back(*extent);
  }
  ReplaceExtents(inode, edit);
}

/// Links a base object at its recorded path again, if the transaction gave it
/// its only known name.
void Tree::RelinkBase(Inode& inode) {
  if (!inode.links.empty() || !inode.record.base || inode.IsOrphan()) return;
  RelinkBase(inode, inode.record.base->path);
}

void Tree::RelinkBase(Inode& inode, const std::string& path) {
  Inode* parent = FindBaseDirectory(ParentPath(path));
  if (path.empty() || parent == nullptr) return;
  if (!parent->Knows(BaseName(path))) Cache(*parent, BaseName(path), inode);
}

/// Runs before any directory moves.
void Tree::NoteLastPaths(const Rewind& rewind) {
  for (const auto& past : rewind.inodes) {
    if (past.has != Rewind::PastInode::Record::kVanishes) continue;
    if (past.record && past.record->base) continue;
    Inode* inode = Find(past.ino);
    if (inode == nullptr || inode->IsOrphan() || inode->lookups == 0) continue;
    inode->orphan.Make().last_path = PathOf(*inode);
  }
}

Tree::WentBack Tree::GoBack(const Rewind& rewind) {
  WentBack went;
  NoteLastPaths(rewind);
  for (const auto& past : rewind.inodes) GoBackInode(past, went);
  for (const auto& [key, value] : rewind.dentries) {
    // A directory that was made and deleted since has no inode.
    if (Find(key.first) != nullptr) SetDentry(key.first, key.second, value);
  }
  for (const auto& [key, value] : rewind.xattrs) {
    const Inode* inode = Find(key.first);
    if (inode != nullptr && !inode->IsOrphan()) {
      SetXattr(key.first, key.second, value);
    }
  }
  std::vector<Ino> unheld;
  for (const Ino ino : TouchedBy(rewind)) {
    Inode* inode = Find(ino);
    if (inode != nullptr) RelinkBase(*inode);
    if (inode != nullptr && inode->lookups != 0) {
      went.changed.push_back(inode);
    } else {
      unheld.push_back(ino);
    }
  }
  for (const Ino ino : unheld) MaybeEvict(ino);
  for (const Ino ino : unheld) {
    if (Inode* inode = Find(ino)) {
      went.changed.push_back(inode);
    } else {
      went.gone.push_back(ino);
    }
  }
  return went;
}

}  // namespace txfs
