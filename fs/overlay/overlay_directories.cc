#include <algorithm>

#include "fs/overlay/overlay.h"

namespace txfs {
namespace {

DirEntry EntryOf(const std::string& name, const Inode& inode) {
  return {.name = name, .st_ino = inode.number, .type = inode.attr().type};
}

}  // namespace

std::vector<DirEntry> OverlayFilesystem::Merge(
    const Inode& directory, const std::vector<BaseEntry>& base) const {
  std::vector<DirEntry> entries;
  entries.reserve(base.size() + directory.names->slots.size() +
                  directory.names->cached.size());
  // A known name has precedence over the base: it stays when another
  // transaction deletes it there.
  tree_.ForEachChild(directory,
                     [&](const std::string& name, const Inode& inode) {
                       entries.push_back(EntryOf(name, inode));
                     });
  for (const BaseEntry& entry : base) {
    if (directory.Knows(entry.name)) continue;
    entries.push_back({.name = entry.name,
                       .st_ino = tree_.NumberOf(directory, entry),
                       .type = entry.type});
  }
  return entries;
}

Result<std::shared_ptr<const DirectorySnapshot>> OverlayFilesystem::Snapshot(
    Ino ino) {
  std::optional<std::string> base_path;
  std::optional<Told> told;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindDirectory(ino));
    if (auto cached = directories_.Find(ino, inode->names->version))
      return cached;
    if (inode->record.base && !inode->IsOrphan()) {
      base_path = TRY(PlaceInBase(*inode));
      if (IsGuarded(*inode)) told = Told::Of(*inode->record.base);
    }
  }
  if (told) TRY(CheckDirectory(ino, *told, *base_path));
  std::vector<BaseEntry> base;
  if (base_path) base = TRY(ListIfThere(base_, *base_path));
  auto snapshot = std::make_shared<DirectorySnapshot>();
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindDirectory(ino));
    snapshot->version = inode->names->version;
    snapshot->entries = Merge(*inode, base);
  }
  AssignCookies(snapshot->entries, cookie_seed_);
  directories_.Put(ino, snapshot);
  return snapshot;
}

Status OverlayFilesystem::ReadDirectory(
    Ino ino, uint64_t cookie,
    const std::function<bool(const DirEntry&)>& visit) {
  std::shared_ptr<const DirectorySnapshot> snapshot;
  DirEntry self{".", 1, 0, FileType::kDirectory};
  DirEntry parent{"..", 2, 0, FileType::kDirectory};
  {
    const ReaderLock gate(gate_);
    snapshot = TRY(Snapshot(ino));
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindDirectory(ino));
    self.st_ino = parent.st_ino = inode->number;
    if (!inode->links.empty()) {
      const Inode* above = tree_.Find(inode->links.front().parent);
      if (above != nullptr) parent.st_ino = above->number;
    }
  }
  // From here on without a lock: `visit` may look up entries.
  if (cookie < self.cookie && !visit(self)) return {};
  if (cookie < parent.cookie && !visit(parent)) return {};
  auto entry = std::ranges::upper_bound(snapshot->entries, cookie, {},
                                        &DirEntry::cookie);
  while (entry != snapshot->entries.end() && visit(*entry)) ++entry;
  return {};
}

}  // namespace txfs
