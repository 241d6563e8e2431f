#include <algorithm>
#include <ranges>
#include <unordered_set>
#include <utility>

#include "fs/tree/tree.h"

namespace txfs {

std::optional<std::string> Tree::VisibleBase(const std::string& path,
                                             const Counts& counts) const {
  if (path.empty()) return "";
  const std::string parent(ParentPath(path));
  const std::string_view name = BaseName(path);
  std::optional<std::string> above;
  if (const Inode* directory = FindBaseDirectory(parent)) {
    const bool hidden = directory->UpperSlot(name) != nullptr &&
                        (!counts || counts(*directory, name));
    if (hidden) return std::nullopt;
    above = VisiblePath(*directory, counts);
  } else {
    above = VisibleBase(parent, counts);
  }
  if (!above) return std::nullopt;
  return JoinPath(*above, name);
}

std::optional<std::string> Tree::VisiblePath(const Inode& inode,
                                             const Counts& counts,
                                             PathMemo* memo) const {
  // Up first, then down: joining the path at each level takes quadratic time.
  struct Step {
    const Inode* inode;
    const Inode::Link* link;  ///< the one way up; null: there is none
  };
  std::vector<Step> steps;
  std::optional<std::string> path;
  for (const Inode* at = &inode;;) {
    if (at->ino == kRootIno) {
      path = "";
      break;
    }
    if (at->IsOrphan() && !counts) break;
    if (const std::string* known = memo ? memo->Find(at->ino) : nullptr) {
      path = *known;
      break;
    }
    const std::vector<const Inode::Link*> ways = WaysUp(*at, counts);
    // The memo also keeps the directory of a file.
    const bool is_file = memo != nullptr && !at->IsDirectory();
    if (ways.size() > 1 || (is_file && !ways.empty())) {
      path = FirstPath(*at, ways, counts, memo);
      break;
    }
    steps.push_back({at, ways.empty() ? nullptr : ways.front()});
    if (ways.empty()) break;
    at = Find(ways.front()->parent);
  }
  for (const Step& step : steps | std::views::reverse) {
    if (path && step.link != nullptr) {
      if (!path->empty()) *path += '/';
      *path += step.link->name;
    } else {
      path = PathByBase(*step.inode, counts);
    }
  }
  if (memo != nullptr && path && inode.IsDirectory()) {
    memo->Add(inode.ino, *path);
  }
  return path;
}

/// Names of `inode` that count, in directories in memory.
std::vector<const Inode::Link*> Tree::WaysUp(const Inode& inode,
                                             const Counts& counts) const {
  std::vector<const Inode::Link*> ways;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr) continue;
    const bool counted = !counts || parent->UpperSlot(link.name) == nullptr ||
                         counts(*parent, link.name);
    if (counted) ways.push_back(&link);
  }
  return ways;
}

std::optional<std::string> Tree::FirstPath(
    const Inode& inode, const std::vector<const Inode::Link*>& ways,
    const Counts& counts, PathMemo* memo) const {
  for (const Inode::Link* way : ways) {
    if (auto above = VisiblePath(*Find(way->parent), counts, memo)) {
      return JoinPath(*above, way->name);
    }
  }
  return PathByBase(inode, counts);
}

std::optional<std::string> Tree::PathByBase(const Inode& inode,
                                            const Counts& counts) const {
  if (!inode.record.base) return std::nullopt;
  return VisibleBase(inode.record.base->path, counts);
}

const std::string* PathMemo::Find(Ino directory) const {
  for (const auto& [ino, path] : recent_) {
    if (ino == directory) return &path;
  }
  return nullptr;
}

void PathMemo::Add(Ino directory, const std::string& path) {
  if (Find(directory) != nullptr) return;
  if (recent_.size() < kKept) {
    recent_.emplace_back(directory, path);
    return;
  }
  recent_[next_] = {directory, path};
  next_ = (next_ + 1) % kKept;
}

const Slot* Tree::SlotAt(std::string_view path) const {
  const Inode* directory = FindBaseDirectory(ParentPath(path));
  return directory == nullptr ? nullptr : directory->UpperSlot(BaseName(path));
}

uint32_t Tree::UpperNames(const Inode& inode) const {
  return static_cast<uint32_t>(
      std::ranges::count_if(inode.links, [&](const Inode::Link& link) {
        const Inode* parent = Find(link.parent);
        const Slot* slot =
            parent == nullptr ? nullptr : parent->UpperSlot(link.name);
        return slot != nullptr && slot->upper.kind == DentryKind::kInode;
      }));
}

bool Tree::IsAtItsPlace(const Inode& inode) const {
  if (VisiblePath(inode) != inode.record.base->path ||
      inode.links.size() != 1) {
    return false;
  }
  const Inode::Link& link = inode.links.front();
  const Inode* parent = Find(link.parent);
  return parent != nullptr && parent->UpperSlot(link.name) == nullptr;
}

bool Tree::IsAsItWas(const Inode& inode) const {
  const auto& origin = inode.record.base;
  if (!inode.upper || !origin || inode.IsDirectory() || inode.IsOrphan() ||
      !inode.IsUnchanged() || inode.attr().nlink != origin->nlink ||
      inode.orphan->retired || inode.links.empty()) {
    return false;
  }
  return std::ranges::all_of(inode.links, [&](const Inode::Link& link) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr || !parent->record.base) return false;
    // A file that was moved away and back has an upper name, which the base
    // also has.
    return parent->UpperSlot(link.name) == nullptr ||
           JoinPath(parent->record.base->path, link.name) == origin->path;
  });
}

std::optional<std::string> Tree::BasePathOf(const Inode::Link& link) const {
  const Inode* parent = Find(link.parent);
  if (parent == nullptr || !parent->record.base ||
      parent->UpperSlot(link.name) != nullptr) {
    return {};
  }
  return JoinPath(parent->record.base->path, link.name);
}

std::vector<std::string> Tree::VisiblePaths(const Inode& inode,
                                            PathMemo* memo) const {
  std::vector<std::string> paths;
  if (inode.IsOrphan()) return paths;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr) continue;
    if (auto above = VisiblePath(*parent, {}, memo)) {
      paths.push_back(JoinPath(*above, link.name));
    }
  }
  if (paths.empty()) {
    if (auto path = VisiblePath(inode, {}, memo)) {
      paths.push_back(std::move(*path));
    }
  }
  return paths;
}

std::vector<std::string> Tree::KnownBasePaths(const Inode& inode) const {
  std::vector<std::string> paths;
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr || !parent->record.base) continue;
    if (parent->CachedChild(link.name) == nullptr) continue;
    paths.push_back(JoinPath(parent->record.base->path, link.name));
  }
  if (paths.empty() && inode.record.base) {
    paths.push_back(inode.record.base->path);
  }
  return paths;
}

Inode* Tree::ObtainBaseDirectory(const std::string& path, const Look& look,
                                 Missing missing) {
  if (path.empty()) return &root();
  if (Inode* known = FindBaseDirectory(path)) return known;
  const std::string name(BaseName(path));
  Inode* parent =
      ObtainBaseDirectory(std::string(ParentPath(path)), look, missing);
  if (parent == nullptr || parent->UpperSlot(name) != nullptr) return nullptr;
  auto object = look(path);
  if (object && IsOursAt(*parent, name, object->st)) return nullptr;
  const bool lost = !object || !S_ISDIR(object->st.st_mode);
  if (lost && missing == Missing::kNone) return nullptr;
  if (lost) {
    // The attributes of the missing directory are unknown.
    object = BaseObject{.path = path, .st = StatOf(*parent), .symlink = {}};
    object->st.st_mode = S_IFDIR | 0755;
    object->st.st_dev = base_device_;
    object->st.st_ino = kNewInodeBit | next_ino_;
  }
  Inode& directory = AdoptBase(*parent, name, *object);
  directory.lost = lost;
  return &directory;
}

bool Tree::LacksName(const Inode& inode) {
  return inode.links.empty() && inode.record.base && !inode.IsOrphan() &&
         inode.ino != kRootIno;
}

void Tree::Relink(Inode& inode, const Look& look) {
  if (!LacksName(inode)) return;
  const std::string path(ParentPath(inode.record.base->path));
  if (ObtainBaseDirectory(path, look, Missing::kLostOne) != nullptr) {
    RelinkBase(inode);
  }
}

bool Tree::IsShadowed(const Inode& inode) const {
  if (!inode.upper || !LacksName(inode)) return false;
  const std::string& path = inode.record.base->path;
  const Inode* parent = FindBaseDirectory(ParentPath(path));
  const Inode* there =
      parent == nullptr ? nullptr : parent->CachedChild(BaseName(path));
  return there != nullptr && there != &inode;
}

/// A changed inode has precedence over an unchanged one with the same name.
void Tree::RelinkUpper(const Look& look) {
  std::vector<Inode*> upper = upper_;
  std::ranges::stable_partition(upper, [](const Inode* inode) {
    return !inode->record.base || inode->IsDirectory() || !inode->IsUnchanged();
  });
  for (Inode* inode : upper) {
    const bool lacked = LacksName(*inode);
    Relink(*inode, look);
    if (lacked && !inode->links.empty()) continue;
    // A changed file is shown at its recorded path, whatever the base has
    // there.
    const bool noted = !inode->IsDirectory() && inode->record.base &&
                       !inode->IsOrphan() && !inode->IsUnchanged();
    if (!noted) continue;
    const std::string& path = inode->record.base->path;
    const Inode* parent = ObtainBaseDirectory(std::string(ParentPath(path)),
                                              look, Missing::kLostOne);
    if (parent != nullptr) RelinkBase(*inode, path);
  }
}

bool Tree::PlaceSurvivor(const Survivor& survivor, Inode& inode,
                         const Look& look) {
  const bool was_orphan = inode.IsOrphan();
  for (const std::string& path : survivor.paths) {
    Inode* parent = ObtainBaseDirectory(std::string(ParentPath(path)), look,
                                        Missing::kNone);
    if (parent == nullptr) continue;
    if (parent->UpperSlot(BaseName(path)) != nullptr) continue;
    if (inode.links.empty() && survivor.unchanged) {
      inode.record.base->path = path;
    } else if (inode.links.empty() && survivor.as_before) {
      inode.record.RestoreAttr();
    } else if (inode.links.empty()) {
      auto object = look(path);
      // While the kernel holds an inode its type is constant, and two inodes
      // must not represent one object.
      if (!object || AttrOf(object->st).type != inode.attr().type) continue;
      if (IsAnother(inode, path, object->st)) continue;
      inode.record = RecordOf(*object);
      inode.base_blocks = static_cast<uint64_t>(object->st.st_blocks);
    } else if (!survivor.unchanged) {
      // Another name may lead to a different file in the base now.
      const auto object = look(path);
      if (!object || !IsOrigin(inode, object->st)) continue;
    }
    Cache(*parent, BaseName(path), inode);
    IndexBase(inode);
  }
  // The kernel never uses a removed directory again: after its return the
  // kernel must see another generation.
  if (was_orphan && inode.IsDirectory() && !inode.links.empty()) {
    ++inode.names.Make().generation;
  }
  return !inode.links.empty();
}

bool Tree::StayInPlace(Inode& inode) {
  if (inode.IsDirectory() || inode.IsOrphan() || inode.lost ||
      !inode.record.base || inode.links.empty()) {
    return false;
  }
  for (const Inode::Link& link : inode.links) {
    const Inode* parent = Find(link.parent);
    if (parent == nullptr || !parent->record.base || parent->lost ||
        parent->IsOrphan() || parent->lookups == 0 ||
        parent->UpperSlot(link.name) != nullptr) {
      return false;
    }
  }
  for (const Inode::Link& link : inode.links)
    ++Find(link.parent)->names.Make().staying;
  inode.stays_in = rebases_;
  ++staying_;
  if (!inode.upper) return true;
  inode.upper = false;  // Rebase empties the list of upper inodes
  inode.record.RestoreAttr();
  if (!inode.extents.empty()) {
    dropped_.extents.push_back(std::move(inode.extents));
  }
  inode.DropContent();
  return true;
}

/// Keeps the names of the inodes that stay in place.
void Tree::StripDirectory(Inode& directory) {
  Inode::Names* names = directory.names.get();
  if (names == nullptr) return;
  const auto goes = [&](const Inode* child) {
    return child != nullptr && child->stays_in != rebases_;
  };
  std::erase_if(names->slots, [&](const auto& entry) {
    return entry.second.IsUpper() || goes(entry.second.cached);
  });
  if (std::ranges::any_of(names->cached.slots(), goes)) {
    const auto cached = std::exchange(names->cached, {});
    for (Inode* child : cached.slots()) {
      if (child != nullptr && !goes(child)) names->cached.Insert(*child);
    }
  }
  names->upper = 0;
  names->children = std::exchange(names->staying, 0);
}

void Tree::Drop(Ino ino) {
  std::unique_ptr<Inode> inode = inodes_.Take(ino);
  // The space that its journal reserves is counted, and no longer needed.
  Inode::Own* const own = has_had_reservations_ ? inode->own.get() : nullptr;
  if (own != nullptr) own->reserved.reset();
  dropped_.inodes.push_back(std::move(inode));
}

void Tree::DropAllBut(const std::vector<Survivor>& survivors) {
  if (survivors.size() + staying_ == inodes_.size()) return;
  std::unordered_set<Ino> listed;
  for (const Survivor& survivor : survivors) listed.insert(survivor.ino);
  const auto stays = [&](const Inode& inode) {
    return inode.stays_in == rebases_ || listed.contains(inode.ino);
  };
  const size_t gone = inodes_.size() - survivors.size() - staying_;
  dropped_.inodes.reserve(gone);
  if (gone < inodes_.size() / 2) {
    for (Inode* inode : inodes_.All()) {
      if (stays(*inode)) continue;
      if (!inode->IsDirectory()) UnindexBase(*inode);
      DropNumber(*inode);
      Drop(inode->ino);
    }
    return;
  }
  // To make the tables anew from the others is less work than to take out most.
  const auto files = std::exchange(base_files_, {});
  const auto numbers = std::exchange(numbers_, {});
  for (Inode* inode : inodes_.All()) {
    if (!stays(*inode)) {
      Drop(inode->ino);
      continue;
    }
    if (inode->indexed) base_files_.Insert(*inode);
    const auto is_this = [&](const Inode& other) { return &other == inode; };
    if (numbers.FindIf(inode->number, is_this) != nullptr) {
      numbers_.Insert(*inode);
    }
  }
}

void Tree::StripSurvivors(std::vector<Survivor>& survivors) {
  for (Survivor& survivor : survivors) {
    const Inode& inode = *Find(survivor.ino);
    const bool is_new = survivor.paths.empty() && !inode.record.base;
    if (is_new) survivor.last_path = PathOf(inode);
  }
  // While the children are there, and have their names.
  for (const Survivor& survivor : survivors) {
    StripDirectory(*Find(survivor.ino));
  }
  DropAllBut(survivors);
  upper_.clear();
  base_directories_.clear();
  for (Survivor& survivor : survivors) {
    Inode& inode = *Find(survivor.ino);
    if (!inode.IsDirectory()) UnindexBase(inode);
    survivor.links = std::exchange(inode.links, {}).ToVector();
    inode.upper = false;
    inode.lost = inode.sought = false;
    if (inode.IsDirectory()) ++inode.names.Make().version;
  }
}

/// The state of an orphan is only in memory.
void Tree::LoadRest(const Image& rest, const std::set<Ino>& orphans) {
  for (const auto& [ino, record] : rest.inodes) {
    if (!orphans.contains(ino)) {
      SetInode(ino, record);
      continue;
    }
    Inode& inode = *Find(ino);
    SetUpper(inode, true);
    const Attr attr = inode.attr();
    inode.record.base = record.base;
    inode.record.SetAttr(attr);
    IndexBase(inode);
  }
  for (const auto& [place, value] : rest.dentries) {
    SetDentry(place.first, place.second, value);
  }
  for (const auto& [place, extent] : rest.extents) {
    if (!orphans.contains(place.first)) PutExtent(place.first, extent);
  }
  for (const auto& [place, value] : rest.xattrs) {
    if (!orphans.contains(place.first)) {
      SetXattr(place.first, place.second, value);
    }
  }
}

Tree::Rebased Tree::Rebase(std::vector<Survivor> survivors, const Look& look,
                           const std::shared_ptr<Journal>& old,
                           const Image& rest) {
  // Directories first: the second name of a file may be in a directory that
  // sorts later.
  const auto files = std::ranges::partition(
      survivors, [&](const auto& s) { return Find(s.ino)->IsDirectory(); });
  std::ranges::sort(survivors.begin(), files.begin(), {}, &Survivor::paths);
  // Inodes that keep their attributes have precedence for a path.
  std::ranges::stable_partition(files, &Survivor::unchanged);
  StripSurvivors(survivors);
  std::set<Ino> orphans;
  for (const Survivor& survivor : survivors) {
    Inode& inode = *Find(survivor.ino);
    if (survivor.stays_orphan) {
      orphans.insert(survivor.ino);
    } else if (rest.inodes.contains(survivor.ino)) {
      inode.DropContent();
    }
  }
  if (!rest.inodes.contains(kRootIno)) {
    if (auto object = look("")) root().record = RecordOf(*object);
    IndexBase(root());
  }
  LoadRest(rest, orphans);
  for (Survivor& survivor : survivors) {
    Inode& inode = *Find(survivor.ino);
    if (inode.upper) {
      for (const std::string& path : survivor.paths) RelinkBase(inode, path);
      RelinkBase(inode);
      continue;
    }
    const bool placed =
        survivor.ino == kRootIno || PlaceSurvivor(survivor, inode, look);
    if (!placed) {
      // The transaction did not delete it: the base has another object there,
      // or none.
      if (!inode.IsOrphan() && inode.record.base)
        inode.orphan.Make().taken = true;
      inode.MakeOrphan();
      if (!survivor.last_path.empty()) {
        inode.orphan.Make().last_path = std::move(survivor.last_path);
      }
      if (old) {
        Inode::Orphan& orphan = inode.orphan.Make();
        if (!inode.extents.empty() && !orphan.retired) orphan.retired = old;
        orphan.segment = 0;
        orphan.end = 0;
        if (Inode::Own* own = inode.own.get()) own->reserved.reset();
      }
      continue;
    }
    if (Inode::Orphan* was = inode.orphan.get()) was->last_path.clear();
    inode.DropContent();
  }
  RelinkUpper(look);
  ++rebases_;
  staying_ = 0;
  Rebased rebased;
  for (Survivor& survivor : survivors) {
    const Inode& inode = *Find(survivor.ino);
    const auto had = [&](const Inode::Link& link) {
      return std::ranges::find(survivor.links, link) != survivor.links.end();
    };
    if (!std::ranges::all_of(inode.links, had)) {
      rebased.moved.push_back(survivor.ino);
    }
    for (Inode::Link& link : survivor.links) {
      const bool stays =
          std::ranges::find(inode.links, link) != inode.links.end();
      if (!stays) rebased.went.push_back(std::move(link));
    }
  }
  return rebased;
}

}  // namespace txfs
