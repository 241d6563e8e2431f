#include "fs/tree/tree.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace txfs {
namespace {

constexpr uint32_t kBlockSize = 4096;
constexpr uint32_t kStatBlock = 512;

uint64_t BlocksOf(uint64_t bytes) {
  return (bytes + kBlockSize - 1) / kBlockSize * (kBlockSize / kStatBlock);
}

bool IsStored(const Extent& extent) { return extent.content.segment != 0; }

void Remove(Inode& inode, const Extent& extent) {
  if (inode.extents.erase(extent.offset) && IsStored(extent)) {
    inode.own.Make().stored_bytes -= extent.length;
  }
}

void Insert(Inode& inode, const Extent& extent) {
  inode.extents.Put(extent);
  if (!IsStored(extent)) return;
  Inode::Own& own = inode.own.Make();
  own.stored_bytes += extent.length;
  if (extent.content.segment == inode.attr().own_segment) {
    own.own_end = std::max(own.own_end, extent.end());
  }
}

/// Number of inodes to prefetch ahead of the visited one.
constexpr size_t kAhead = 8;

void Prefetch(const Inode& inode) {
  constexpr size_t kCacheLine = 64;
  const auto* bytes = reinterpret_cast<const char*>(&inode);
  for (size_t at = 0; at < sizeof inode; at += kCacheLine) {
    __builtin_prefetch(bytes + at, 1);
  }
}

}  // namespace

Tree::Tree(const struct stat& root, uint64_t base_device)
    : base_device_(base_device) {
  Inode& inode = Obtain(kRootIno);
  inode.record = RecordOf({"", root, ""});
  inode.lookups = 1;
  IndexBase(inode);
  Number(inode);
}

Inode* Tree::Find(Ino ino) { return inodes_.Find(ino); }

const Inode* Tree::Find(Ino ino) const { return inodes_.Find(ino); }

Inode& Tree::Obtain(Ino ino) {
  if (Inode* known = Find(ino)) return *known;
  next_ino_ = std::max(next_ino_, Raw(ino) + 1);
  return inodes_.Insert(std::make_unique<Inode>(ino));
}

void Tree::SetUpper(Inode& inode, bool upper) {
  if (inode.upper == upper) return;
  inode.upper = upper;
  if (!upper && !inode.IsDirectory()) inode.lost = inode.sought = false;
  Inode::Own* own = inode.own.get();
  if (!upper && own != nullptr) own->reserved.reset();
  if (upper) {
    inode.upper_at = static_cast<uint32_t>(upper_.size());
    upper_.push_back(&inode);
    return;
  }
  Inode* last = upper_.back();
  last->upper_at = inode.upper_at;
  upper_[inode.upper_at] = last;
  upper_.pop_back();
}

Attr AttrOf(const struct stat& st) {
  Attr attr;
  attr.type = TypeOfMode(st.st_mode).value_or(FileType::kRegular);
  attr.mode = st.st_mode & 07777;
  attr.uid = st.st_uid;
  attr.gid = st.st_gid;
  attr.nlink = static_cast<uint32_t>(st.st_nlink);
  attr.rdev = st.st_rdev;
  attr.size = static_cast<uint64_t>(st.st_size);
  attr.base_limit = attr.type == FileType::kRegular ? attr.size : 0;
  attr.atime = Timestamp::From(st.st_atim);
  attr.mtime = Timestamp::From(st.st_mtim);
  attr.ctime = Timestamp::From(st.st_ctim);
  return attr;
}

bool MayBeInFlight(const Inode& inode, uint64_t now) {
  // Between the reply and its use by the kernel lies the wait for a processor.
  constexpr uint64_t kMilliseconds = 1000;
  return inode.looked_up + kMilliseconds > now;
}

void Inode::MakeOrphan() {
  Attr gone = attr();
  gone.nlink = 0;
  record.SetAttr(gone);
}

void Inode::DropContent() {
  // Avoids writes to empty maps, of which there may be many.
  if (!extents.empty()) extents.clear();
  Own* has = own.get();
  if (has == nullptr) return;
  if (has->xattrs.was_made()) has->xattrs.Reset();
  has->stored_bytes = has->own_end = 0;
  has->reserved.reset();
}

const Slot* Inode::UpperSlot(std::string_view name) const {
  if (names->upper == 0) return nullptr;
  const auto slot = names->slots.find(name);
  return slot != names->slots.end() && slot->second.IsUpper() ? &slot->second
                                                              : nullptr;
}

Inode* Inode::CachedChild(std::string_view name) const {
  if (Inode* child = names->cached.Find(name)) return child;
  const auto slot = names->slots.find(name);
  return slot == names->slots.end() ? nullptr : slot->second.cached;
}

bool Inode::Knows(std::string_view name) const {
  return names->cached.Find(name) != nullptr || names->slots.contains(name);
}

void Inode::ForEachCached(
    const std::function<void(const std::string&, Inode&)>& visit) const {
  for (Inode* child : names->cached.slots()) {
    if (child != nullptr) visit(child->links.front().name, *child);
  }
  for (const auto& [name, slot] : names->slots) {
    if (slot.cached != nullptr) visit(name, *slot.cached);
  }
}

void Inode::Cache(std::string_view name, Inode& child) {
  assert(!Knows(name));
  const Link& first = child.links.front();
  if (first.parent == ino && first.name == name) {
    names.Make().cached.Insert(child);
  } else {
    names.Make().slots[std::string(name)].cached = &child;
  }
}

void Inode::Uncache(std::string_view name) {
  if (const Inode* child = names->cached.Find(name)) {
    names.Make().cached.Erase(*child);
    return;
  }
  const auto slot = names->slots.find(name);
  if (slot == names->slots.end() || slot->second.IsUpper()) return;
  names.Make().slots.erase(slot);
}

std::string_view ByFirstName::Of(const Inode& inode) {
  return inode.links.front().name;
}

bool Inode::ContentChanged() const {
  return attr().type == FileType::kRegular &&
         (!extents.empty() || attr().size != record.base->size ||
          attr().base_limit != record.base->size);
}

bool Inode::AttributesChanged() const {
  const BaseOrigin& origin = *record.base;
  return attr().xattrs_owned || attr().mode != (origin.mode & 07777) ||
         attr().uid != origin.uid || attr().gid != origin.gid;
}

bool Inode::IsUnchanged() const {
  return !ContentChanged() && !AttributesChanged() &&
         attr().mtime == record.base->mtime;
}

BaseOrigin Tree::OriginOf(const std::string& path,
                          const struct stat& st) const {
  return {.path = path,
          .dev = RelativeDevice(st.st_dev),
          .ino = st.st_ino,
          .size = static_cast<uint64_t>(st.st_size),
          .mode = st.st_mode,
          .nlink = static_cast<uint32_t>(st.st_nlink),
          .uid = st.st_uid,
          .gid = st.st_gid,
          .mtime = Timestamp::From(st.st_mtim),
          .ctime = Timestamp::From(st.st_ctim)};
}

InodeRecord Tree::RecordOf(const BaseObject& object) const {
  return {.attr = AttrOf(object.st),
          .base = OriginOf(object.path, object.st),
          .symlink = object.symlink};
}

// --- State -----------------------------------------------------------------

void Tree::SetInode(Ino ino, const std::optional<InodeRecord>& record) {
  ++name_changes_;
  if (record) {
    Inode& inode = Obtain(ino);
    SetRecord(inode, *record);
    SetUpper(inode, true);
    return;
  }
  Inode* inode = Find(ino);
  if (inode == nullptr) return;
  SetUpper(*inode, false);
  if (!inode->record.base) inode->MakeOrphan();
  MaybeEvict(ino);
}

void Tree::SetAttr(Ino ino, const Attr& attr) {
  if (Inode* inode = Find(ino)) inode->record.SetAttr(attr);
}

void Tree::SetDentry(Ino parent, const std::string& name,
                     const DentryValue& value) {
  ++name_changes_;
  Inode& directory = Obtain(parent);
  Inode::Names& names = directory.names.Make();
  ++names.version;
  Inode* old = FindChild(directory, name);
  directory.Uncache(name);
  Slot& slot = names.slots[name];
  if (slot.IsUpper()) --names.upper;
  if (value.kind != DentryKind::kAbsent) ++names.upper;
  slot = Slot{.upper = value};
  if (old != nullptr) RemoveLink(*old, parent, name);
  if (value.kind == DentryKind::kInode) {
    AddLink(Obtain(value.ino), parent, name);
  }
  if (value.kind == DentryKind::kAbsent) names.slots.erase(name);
}

void Tree::EraseExtent(Ino ino, const Extent& extent) {
  Inode* inode = Find(ino);
  // An orphan keeps its content for open descriptors.
  if (inode != nullptr && !inode->IsOrphan()) Remove(*inode, extent);
}

void Tree::PutExtent(Ino ino, const Extent& extent) {
  Insert(Obtain(ino), extent);
}

void Tree::ReplaceExtents(Inode& inode, const ExtentEdit& edit) {
  for (const Extent& extent : edit.before) Remove(inode, extent);
  for (const Extent& extent : edit.after) Insert(inode, extent);
}

void Tree::SetXattr(Ino ino, const std::string& name,
                    const std::optional<std::string>& value) {
  Inode::Own& own = Obtain(ino).own.Make();
  if (value) {
    own.xattrs.Make()[name] = *value;
  } else if (own.xattrs.was_made()) {
    own.xattrs.Make().erase(name);
  }
}

void Tree::Load(Image image) {
  const size_t size = inodes_.size() + image.inodes.size();
  upper_.reserve(size);
  numbers_.Reserve(size);
  base_files_.Reserve(size);
  // The two are not to take their memory at the same time.
  while (!image.inodes.empty()) {
    auto row = image.inodes.extract(image.inodes.begin());
    ++name_changes_;
    Inode& inode = Obtain(row.key());
    SetRecord(inode, std::move(row.mapped()));
    SetUpper(inode, true);
  }
  for (const auto& [place, value] : std::exchange(image.dentries, {})) {
    SetDentry(place.first, place.second, value);
  }
  for (const auto& [place, extent] : std::exchange(image.extents, {})) {
    PutExtent(place.first, extent);
  }
  for (const auto& [place, value] : image.xattrs) {
    SetXattr(place.first, place.second, value);
  }
}

// --- names -----------------------------------------------------------------

void Tree::AddLink(Inode& child, Ino parent, std::string_view name) {
  for (const Inode::Link& link : child.links) {
    if (link.parent == parent && link.name == name) return;
  }
  child.links.Add({parent, std::string(name)});
  ++Obtain(parent).names.Make().children;
}

void Tree::RemoveLink(Inode& child, Ino parent, std::string_view name) {
  const auto link = std::ranges::find_if(child.links, [&](const auto& l) {
    return l.parent == parent && l.name == name;
  });
  if (link == child.links.end()) return;
  child.links.Erase(link);
  Inode* directory = Find(parent);
  if (directory == nullptr) return;
  --directory->names.Make().children;
  // Only held inodes need a last path. In the middle of a rollback, which noted
  // the paths before, directories may contain each other.
  const bool held = child.lookups != 0;
  if (held && child.IsOrphan() && child.links.empty() &&
      child.orphan->last_path.empty()) {
    child.orphan.Make().last_path = PathOf(*directory, name);
  }
}

Inode* Tree::FindChild(const Inode& directory, std::string_view name) const {
  const Slot* slot = directory.UpperSlot(name);
  if (slot == nullptr) return directory.CachedChild(name);
  if (slot->upper.kind == DentryKind::kWhiteout) return nullptr;
  return inodes_.Find(slot->upper.ino);
}

void Tree::ForEachChild(
    const Inode& directory,
    const std::function<void(const std::string&, const Inode&)>& visit) const {
  if (directory.names->upper != 0) {
    for (const auto& [name, slot] : directory.names->slots) {
      if (slot.upper.kind != DentryKind::kInode) continue;
      if (const Inode* child = Find(slot.upper.ino)) visit(name, *child);
    }
  }
  directory.ForEachCached(visit);
}

bool Tree::IsDecided(const Inode& directory, std::string_view name) {
  return !directory.record.base || directory.Knows(name);
}

Inode& Tree::AdoptBase(Inode& directory, std::string_view name,
                       const BaseObject& object) {
  Inode* inode = S_ISDIR(object.st.st_mode)
                     ? FindBaseDirectory(object.path)
                     : FindBaseFile(object.path, object.st);
  // A deleted inode does not return with the base object.
  if (inode == nullptr || inode->IsOrphan()) {
    inode = &Obtain(AllocateIno());
    inode->record = RecordOf(object);
    inode->base_blocks = static_cast<uint64_t>(object.st.st_blocks);
    IndexBase(*inode);
    Number(*inode);
  } else {
    if (inode->base_blocks == Inode::kUnknownBlocks) {
      inode->base_blocks = static_cast<uint64_t>(object.st.st_blocks);
    }
    std::vector<Ino> stale;  // the reply to this lookup carries its attributes
    if (!inode->IsDirectory()) SetLost(*inode, false, stale);
  }
  Cache(directory, name, *inode);
  return *inode;
}

void Tree::Cache(Inode& directory, std::string_view name, Inode& child) {
  AddLink(child, directory.ino, name);
  const Inode* known = directory.CachedChild(name);
  if (known == &child) return;
  if (known != nullptr) directory.Uncache(name);
  directory.Cache(name, child);
}

bool Tree::IsOursAt(const Inode& directory, std::string_view name,
                    const struct stat& st) const {
  const Inode* known = directory.CachedChild(name);
  return known != nullptr && known->upper && !known->IsDirectory() &&
         !IsOrigin(*known, st);
}

bool Tree::ShowAt(Inode& directory, std::string_view name, Inode& child) {
  const Inode* other = directory.CachedChild(name);
  if (other != nullptr && other != &child) {
    const bool held = other->upper || other->lookups != 0;
    if (held || other->IsDirectory()) return false;
    DropCached(directory, std::string(name));
  }
  ++directory.names.Make().version;
  Cache(directory, name, child);
  IndexBase(child);
  return true;
}

std::string Tree::PathOf(const Inode& inode) const {
  if (inode.ino == kRootIno) return "";
  if (inode.links.empty()) {
    if (inode.IsOrphan() && !inode.orphan->last_path.empty()) {
      return inode.orphan->last_path;
    }
    return inode.record.base ? inode.record.base->path : "";
  }
  const Inode* parent = Find(inode.links.front().parent);
  if (parent == nullptr) return inode.links.front().name;
  return PathOf(*parent, inode.links.front().name);
}

std::string Tree::PathOf(const Inode& directory, std::string_view name) const {
  std::vector<std::string_view> parts{name};
  const Inode* at = &directory;
  while (at != nullptr && at->ino != kRootIno && !at->links.empty()) {
    parts.push_back(at->links.front().name);
    at = Find(at->links.front().parent);
  }
  if (at != nullptr && at->ino != kRootIno && at->record.base) {
    parts.push_back(at->record.base->path);
  }
  std::string path;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!path.empty()) path += '/';
    path += *part;
  }
  return path;
}

bool Tree::IsBelow(const Inode& inode, Ino ancestor) const {
  const Inode* at = &inode;
  while (at != nullptr) {
    if (at->ino == ancestor) return true;
    if (at->ino == kRootIno || at->links.empty()) return false;
    at = Find(at->links.front().parent);
  }
  return false;
}

uint64_t Tree::DeviceOf(const Inode& directory) const {
  const Inode* at = &directory;
  while (at != nullptr && !at->record.base && !at->links.empty()) {
    at = Find(at->links.front().parent);
  }
  return at != nullptr && at->record.base ? at->record.base->dev : 0;
}

// --- base index ------------------------------------------------------------

void Tree::SetRecord(Inode& inode, InodeRecord record) {
  UnindexBase(inode);
  inode.record = std::move(record);
  IndexBase(inode);
  Number(inode);
}

void Tree::IndexBase(Inode& inode) {
  if (!inode.record.base) return;
  const BaseOrigin& base = *inode.record.base;
  if (!inode.IsDirectory()) {
    if (!inode.indexed) base_files_.Insert(inode);
    inode.indexed = true;
    return;
  }
  Ino& known = base_directories_[base.path];
  // A deleted directory gives way to one that returned.
  const Inode* other = inode.IsOrphan() ? Find(known) : nullptr;
  if (other == nullptr || other->IsOrphan()) known = inode.ino;
}

void Tree::UnindexBase(Inode& inode) {
  if (!inode.record.base) return;
  const BaseOrigin& base = *inode.record.base;
  if (inode.IsDirectory()) {
    const auto found = base_directories_.find(base.path);
    if (found != base_directories_.end() && found->second == inode.ino) {
      base_directories_.erase(found);
    }
    return;
  }
  if (!inode.indexed) return;
  const bool was_known = base_files_.Erase(inode);
  assert(was_known);
  static_cast<void>(was_known);
  inode.indexed = false;
}

Inode* Tree::FindBaseDirectory(std::string_view path) {
  const auto found = base_directories_.find(path);
  return found == base_directories_.end() ? nullptr : Find(found->second);
}

const Inode* Tree::FindBaseDirectory(std::string_view path) const {
  const auto found = base_directories_.find(path);
  return found == base_directories_.end() ? nullptr : Find(found->second);
}

Inode* Tree::FindBaseFile(const std::string& path, const struct stat& st) {
  const auto type = TypeOfMode(st.st_mode);
  if (!type) return nullptr;
  const Inode* found =
      FindBaseFile(path, {.key = {RelativeDevice(st.st_dev), st.st_ino},
                          .type = *type,
                          .has_others = st.st_nlink > 1});
  return found == nullptr ? nullptr : Find(found->ino);
}

const Inode* Tree::FindBaseFile(std::string_view path,
                                const BaseFile& file) const {
  const Inode* best = nullptr;
  std::tuple<bool, bool, bool> best_rank;
  const auto consider = [&](const Inode& inode) {
    if (inode.attr().type != file.type) return;
    // A reused inode number is another file. A file with one name that another
    // program moved is also another inode: it stays at its old path.
    const BaseOrigin& origin = *inode.record.base;
    const bool is_there = origin.path == path;
    const bool may_be = file.has_others && (!inode.lost || origin.nlink > 1);
    if (!is_there && !may_be) return;
    const std::tuple rank{!inode.IsOrphan(), !inode.lost, is_there};
    const bool is_better = best == nullptr || rank > best_rank ||
                           (rank == best_rank && inode.ino < best->ino);
    if (!is_better) return;
    best = &inode;
    best_rank = rank;
  };
  base_files_.ForEachOf(file.key, consider);
  return best;
}

bool Tree::IsAnother(const Inode& inode, const std::string& path,
                     const struct stat& st) {
  const Inode* other = S_ISDIR(st.st_mode) ? nullptr : FindBaseFile(path, st);
  return other != nullptr && other != &inode && !other->IsOrphan();
}

// --- lifetime --------------------------------------------------------------

std::vector<Extent> Tree::Forget(Ino ino, uint64_t lookups,
                                 std::shared_ptr<Journal>* retired) {
  Inode* inode = Find(ino);
  if (inode == nullptr || ino == kRootIno) return {};
  const uint64_t held = inode->lookups;
  inode->lookups = held > lookups ? held - lookups : 0;
  std::vector<Extent> freed;
  if (inode->lookups == 0 && inode->IsOrphan()) {
    for (const auto& [offset, extent] : inode->extents) freed.push_back(extent);
    inode->extents.clear();
    if (Inode::Own* own = inode->own.get()) {
      own->stored_bytes = 0;
      own->reserved.reset();
    }
    if (Inode::Orphan* orphan = inode->orphan.get()) {
      orphan->pinned_base.reset();
      *retired = std::move(orphan->retired);
    }
  }
  MaybeEvict(ino);
  return freed;
}

void Tree::MaybeEvict(Ino ino) {
  while (ino != kRootIno) {
    Inode* inode = Find(ino);
    if (inode == nullptr || inode->upper || inode->lookups != 0 ||
        inode->names->children != 0) {
      return;
    }
    const std::vector<Inode::Link> links = inode->links.ToVector();
    for (const Inode::Link& link : links) {
      Inode* parent = Find(link.parent);
      if (parent == nullptr) continue;
      if (parent->CachedChild(link.name) == inode) parent->Uncache(link.name);
      if (HasOtherNumber(*inode)) KeepNumber(*inode, *parent);
      RemoveLink(*inode, link.parent, link.name);
    }
    UnindexBase(*inode);
    DropNumber(*inode);
    std::ignore = inodes_.Take(ino);
    if (links.empty()) return;
    for (size_t i = 1; i < links.size(); ++i) MaybeEvict(links[i].parent);
    ino = links.front().parent;
  }
}

void Tree::ForEach(const std::function<void(Inode&)>& visit) {
  // As they were made: what one visit finds in the base, such as a directory,
  // is of use to the next.
  const std::vector<Inode*> all = inodes_.All();
  // They are scattered in memory: prefetch the next ones.
  for (size_t i = 0; i < all.size(); ++i) {
    if (i + kAhead < all.size()) Prefetch(*all[i + kAhead]);
    visit(*all[i]);
  }
}

void Tree::ForEachUpper(const std::function<void(Inode&)>& visit) {
  for (size_t i = 0; i < upper_.size(); ++i) {
    if (i + kAhead < upper_.size()) Prefetch(*upper_[i + kAhead]);
    visit(*upper_[i]);
  }
}

std::vector<MovedDirectory> Tree::MovedDirectories() const {
  std::vector<MovedDirectory> moved;
  for (const Inode* inode : upper_) {
    if (!inode->IsDirectory() || !inode->record.base || inode->links.empty()) {
      continue;
    }
    const std::string& base = inode->record.base->path;
    const Inode::Link& link = inode->links.front();
    const Inode* parent = Find(link.parent);
    const bool goes_along = parent != nullptr && parent->record.base &&
                            parent->record.base->path == ParentPath(base) &&
                            link.name == BaseName(base);
    if (goes_along) continue;
    if (auto path = VisiblePath(*inode)) {
      moved.push_back({.base_path = base, .path = std::move(*path)});
    }
  }
  return moved;
}

struct stat Tree::StatOf(const Inode& inode) {
  const Attr& attr = inode.attr();
  struct stat st{};
  st.st_ino = inode.number;
  st.st_mode = ModeBits(attr.type) | attr.mode;
  st.st_nlink = attr.nlink;
  st.st_uid = attr.uid;
  st.st_gid = attr.gid;
  st.st_rdev = attr.rdev;
  st.st_size = static_cast<off_t>(attr.size);
  st.st_blksize = kBlockSize;
  const bool known = inode.base_blocks != Inode::kUnknownBlocks;
  uint64_t blocks = known ? inode.base_blocks : 0;
  if (attr.type == FileType::kRegular && (inode.upper || !known)) {
    const uint64_t from_base =
        known ? std::min(attr.base_limit, blocks * kStatBlock)
              : attr.base_limit;
    const Inode::Own& own = *inode.own;
    blocks = BlocksOf(std::min(from_base + own.stored_bytes, attr.size) +
                      (own.reserved ? own.reserved->bytes() : 0));
  }
  st.st_blocks = static_cast<blkcnt_t>(blocks);
  st.st_atim = attr.atime.ToTimespec();
  st.st_mtim = attr.mtime.ToTimespec();
  st.st_ctim = attr.ctime.ToTimespec();
  return st;
}

}  // namespace txfs
