#include "fs/diff/change_list.h"

#include <sys/stat.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <unordered_set>

#include "fs/diff/plain_files.h"
#include "fs/overlay/overlay.h"
#include "fs/tree/own_xattrs.h"

namespace txfs {
namespace {

bool AttributesDiffer(const ChangeSide& a, const ChangeSide& b) {
  return a.attr.mode != b.attr.mode || a.attr.uid != b.attr.uid ||
         a.attr.gid != b.attr.gid;
}

/// The object at `path`; none if this process may not look there, or if nothing
/// is there. Another program may close or remove a directory meanwhile.
Result<std::optional<BaseObject>> FindOpen(const BaseDirectory& base,
                                           const std::string& path) {
  auto object = FindObject(base, path);
  if (!object && IsClosedOrGone(object.error())) return std::nullopt;
  return object;
}

/// Whether a write or a cut may have changed the content of a file of which the
/// base has `size` bytes.
bool IsWritten(const Inode& inode, uint64_t size) {
  return !inode.extents.empty() || inode.attr().base_limit < size;
}

/// What the overlay shows under a name.
struct NewName {
  const Inode* inode = nullptr;  ///< nullptr: not in memory, all from the base
  std::string base_path;         ///< "" when it has none
};

}  // namespace

ChangeSide SideOf(BaseObject object) {
  ChangeSide side;
  side.attr = AttrOf(object.st);
  side.base_path = std::move(object.path);
  side.symlink = std::move(object.symlink);
  return side;
}

ChangeSide SideOf(const Inode& inode) {
  ChangeSide side;
  side.attr = inode.attr();
  side.symlink = inode.record.symlink();
  side.ino = inode.ino;
  return side;
}

std::unique_ptr<ChangeCandidate> ChangeCandidate::OfNew(std::string path,
                                                        const Inode& inode) {
  auto candidate = std::make_unique<ChangeCandidate>();
  candidate->change = {.kind = ChangeKind::kAdded,
                       .path = std::move(path),
                       .after = SideOf(inode),
                       .content = true};
  return candidate;
}

Difference Difference::Of(const Inode& inode) {
  const BaseOrigin& origin = *inode.record.base;
  const Attr& attr = inode.attr();
  const bool has_other_size = attr.size != origin.size;
  return {.attributes = attr.mode != (origin.mode & 07777) ||
                        attr.uid != origin.uid || attr.gid != origin.gid,
          .content = has_other_size,
          .may_content = !has_other_size && IsWritten(inode, origin.size),
          .may_xattrs = attr.xattrs_owned};
}

std::unique_ptr<ChangeCandidate> ChangeCandidate::OfChanged(
    const Inode& inode, const Difference& differs) {
  const std::string& path = inode.record.base->path;
  auto candidate = std::make_unique<ChangeCandidate>();
  candidate->change = {.path = path,
                       .after = SideOf(inode),
                       .content = differs.content,
                       .attributes = differs.attributes};
  candidate->same_object = true;
  candidate->compare = differs.may_content;
  if (candidate->compare) candidate->AddExtents(inode);
  if (differs.may_xattrs) {
    candidate->base_xattrs_of = path;
    candidate->xattrs = OwnXattrs(inode);
  }
  return candidate;
}

void ChangeCandidate::AddExtents(const Inode& inode) {
  // Beyond what is left of the base's, and not written, all is zero.
  const Attr& attr = inode.attr();
  if (attr.base_limit < attr.size) {
    extents.push_back({attr.base_limit, attr.size - attr.base_limit, {}});
  }
  for (const auto& [offset, extent] : inode.extents) extents.push_back(extent);
}

class ChangeCollector {
 public:
  /// `plain`: null, or files that are left out, with the other inodes.
  ChangeCollector(Frozen& frozen, const PlainFiles* plain, bool expand)
      : frozen_(frozen),
        preimages_(frozen.origins.preimages()),
        plain_(plain),
        among_(plain != nullptr ? plain->others : frozen.tree.upper()),
        expand_(expand) {}

  Result<ChangeList> Run() {
    // Directories that were opened lately may have been moved since.
    frozen_.base.DropCache();
    TRY(CollectNames());
    CollectTouched();
    TRY(Pair());
    return std::move(list_);
  }

 private:
  Status CollectNames() {
    for (const Inode* inode : among_) {
      // Whoever hides a deleted one hides all that the base has in it.
      if (inode->IsDirectory() && !inode->IsOrphan()) {
        TRY(CollectDirectory(*inode));
      }
    }
    return {};
  }

  /// Both sides of every name that the upper changed in `directory`.
  Status CollectDirectory(const Inode& directory) {
    const auto visible = frozen_.tree.VisiblePath(directory, {}, &paths_);
    for (const auto& [name, slot] : directory.names->slots) {
      if (!slot.IsUpper()) continue;
      const Inode* child = slot.upper.kind == DentryKind::kInode
                               ? frozen_.tree.Find(slot.upper.ino)
                               : nullptr;
      // A plain file under a name of the journal is new: PlainFiles has listed
      // it, and the base has nothing there.
      if (child != nullptr && IsPlain(*child)) continue;
      if (directory.record.base) {
        TRY(AddOld(JoinPath(directory.record.base->path, name)));
      }
      if (child == nullptr || !visible) continue;
      TRY(AddNew(JoinPath(*visible, name), *child));
    }
    return {};
  }

  [[nodiscard]] bool IsPlain(const Inode& inode) const {
    return plain_ != nullptr && inode.upper && plain_->is_plain[inode.upper_at];
  }

  /// A base name the overlay hides or replaces, with what is below it.
  Status AddOld(const std::string& path) {
    // No recursion: a tree may be deeper than the stack.
    std::vector<std::string> waiting{path};
    while (!waiting.empty()) {
      const std::string next = std::move(waiting.back());
      waiting.pop_back();
      TRY(AddOldObject(next, waiting));
    }
    return {};
  }

  /// The names in it come to `waiting`.
  Status AddOldObject(const std::string& path,
                      std::vector<std::string>& waiting) {
    if (old_.contains(path)) return {};
    auto object = TRY(FindOpen(frozen_.base, path));
    if (!object) return {};
    const bool is_directory = S_ISDIR(object->st.st_mode);
    old_.emplace(path, std::move(*object));
    if (!is_directory) return {};
    // A directory that lives on elsewhere takes its content along.
    const Inode* inode = frozen_.tree.FindBaseDirectory(path);
    if (!expand_ && inode != nullptr && !inode->IsOrphan()) return {};
    return EachIn(path, [&](const BaseEntry& entry) -> Status {
      waiting.push_back(JoinPath(path, entry.name));
      return {};
    });
  }

  /// Of a directory that may not be listed, it alone is known.
  template <class Visit>
  Status EachIn(const std::string& path, const Visit& visit) {
    const auto entries = TRY(ListIfOpen(frozen_.base, path));
    for (const BaseEntry& entry : entries) TRY(visit(entry));
    return {};
  }

  Status AddNew(const std::string& path, const Inode& inode) {
    const std::string base =
        inode.record.base ? inode.record.base->path : std::string();
    new_.insert_or_assign(path, NewName{&inode, base});
    if (expand_ && inode.IsDirectory() && inode.record.base) {
      TRY(AddBaseChildren(path, base));
    }
    return {};
  }

  /// The inode of a base object, if it is in memory.
  const Inode* FindBase(const std::string& path, FileType type) {
    if (type == FileType::kDirectory) {
      return frozen_.tree.FindBaseDirectory(path);
    }
    const auto st = frozen_.base.Stat(path);
    return st ? frozen_.tree.FindBaseFile(path, *st) : nullptr;
  }

  /// What a moved base directory still shows of its base content.
  Status AddBaseChildren(const std::string& path, const std::string& base) {
    std::vector<std::pair<std::string, std::string>> waiting{{path, base}};
    while (!waiting.empty()) {
      const auto next = std::move(waiting.back());
      waiting.pop_back();
      TRY(AddChildrenOf(next.first, next.second, waiting));
    }
    return {};
  }

  /// The directories in it come to `waiting`.
  Status AddChildrenOf(
      const std::string& path, const std::string& base,
      std::vector<std::pair<std::string, std::string>>& waiting) {
    const Inode* directory = frozen_.tree.FindBaseDirectory(base);
    // Somebody else may have removed it meanwhile, or put a file in its place.
    return EachIn(base, [&](const BaseEntry& entry) -> Status {
      const Inode* inode = nullptr;
      if (directory != nullptr) {
        if (directory->UpperSlot(entry.name) != nullptr) return {};
        inode = directory->CachedChild(entry.name);
      }
      const std::string child_base = JoinPath(base, entry.name);
      const std::string child_path = JoinPath(path, entry.name);
      if (inode == nullptr) inode = FindBase(child_base, entry.type);
      new_.insert_or_assign(child_path, NewName{inode, child_base});
      // What was changed here hides a directory that others put there.
      const bool hidden = inode != nullptr && !inode->IsDirectory();
      if (entry.type != FileType::kDirectory || hidden) return {};
      waiting.emplace_back(child_path, child_base);
      return {};
    });
  }

  /// Base objects changed in place.
  void CollectTouched() {
    for (const Inode* inode : among_) {
      if (!inode->record.base || inode->IsOrphan()) continue;
      for (const std::string& path :
           frozen_.tree.VisiblePaths(*inode, &paths_)) {
        new_.try_emplace(path, NewName{inode, inode->record.base->path});
      }
      AddLostAbove(*inode);
    }
  }

  /// Directories that the base has no more, and that are shown for what the
  /// transaction has in them: its commit makes them again.
  void AddLostAbove(const Inode& inode) {
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = frozen_.tree.Find(link.parent);
      const bool is_lost = parent != nullptr && parent->lost && !parent->upper;
      const auto path =
          is_lost ? frozen_.tree.VisiblePath(*parent) : std::nullopt;
      if (!path) continue;
      const NewName name{parent, parent->record.base->path};
      if (new_.try_emplace(*path, name).second) AddLostAbove(*parent);
    }
  }

  Result<std::optional<BaseObject>> BeforeAt(const std::string& path) {
    const auto known = old_.find(path);
    if (known != old_.end()) return known->second;
    return FindOpen(frozen_.base, path);
  }

  /// None: the base object is no longer known.
  Result<std::optional<ChangeSide>> AfterOf(const NewName& name) {
    const bool is_base =
        name.inode == nullptr || (!name.inode->upper && !name.inode->lost);
    if (is_base) {
      auto object = TRY(FindOpen(frozen_.base, name.base_path));
      if (!object) return std::nullopt;
      return SideOf(std::move(*object));
    }
    return SideOf(*name.inode);
  }

  Status Pair() {
    for (const auto& [path, name] : new_) TRY(PairNew(path, name));
    DropEmptied();
    std::set<std::string> moved;  // a rename says that they are elsewhere
    for (const auto& candidate : list_.candidates_) {
      moved.insert(candidate->change.old_path);
    }
    for (const auto& [path, old] : old_) {
      if (new_.contains(path) || moved.contains(path)) continue;
      NetChange change{.kind = ChangeKind::kDeleted, .path = path};
      change.before = SideOf(old);
      change.content = true;
      AddAlone(std::move(change));
    }
    return {};
  }

  /// Whether the base object is here instead of at its base path: not when
  /// that still shows it, and this is one more hard link.
  [[nodiscard]] bool HasMoved(const std::string& path,
                              const NewName& name) const {
    if (name.base_path.empty() || new_.contains(name.base_path)) return false;
    const auto visible = frozen_.tree.VisibleBase(name.base_path);
    return !visible || *visible == path;
  }

  Status PairNew(const std::string& path, const NewName& name) {
    std::optional<ChangeSide> seen = TRY(AfterOf(name));
    if (!seen) return {};
    ChangeSide& after = *seen;
    std::optional<BaseObject> before = TRY(BeforeAt(path));
    const bool hides = before && S_ISDIR(before->st.st_mode) &&
                       after.attr.type != FileType::kDirectory;
    if (hides) TRY(AddOld(path));  // also where others made it a directory
    if (before) {
      return AddPair(path, "", name, *std::move(before), std::move(after));
    }
    if (HasMoved(path, name)) {
      before = TRY(BeforeAt(name.base_path));
      if (before) {
        return AddPair(path, name.base_path, name, *std::move(before),
                       std::move(after));
      }
    }
    const bool may_be_emptied = name.inode != nullptr &&
                                name.inode->IsDirectory() && name.inode->lost &&
                                !name.inode->AttributesChanged() &&
                                frozen_.tree.UpperNames(*name.inode) == 0;
    if (may_be_emptied) emptied_.push_back(path);
    NetChange change{.kind = ChangeKind::kAdded, .path = path};
    change.after = std::move(after);
    change.content = true;
    AddAlone(std::move(change));
    return {};
  }

  /// Of a directory that the base has no more, and in which the transaction has
  /// only deleted, no commit makes anything.
  void DropEmptied() {
    if (emptied_.empty()) return;
    std::set<std::string> paths;
    for (const auto& candidate : list_.candidates_) {
      paths.insert(candidate->change.path);
    }
    std::ranges::sort(emptied_);
    // Those inside first.
    for (const std::string& path : emptied_ | std::views::reverse) {
      const std::string below = path + "/";
      const auto first = paths.lower_bound(below);
      const bool has_more = first != paths.end() && first->starts_with(below);
      if (!has_more) paths.erase(path);
    }
    std::erase_if(list_.candidates_, [&](const auto& candidate) {
      return !paths.contains(candidate->change.path);
    });
  }

  /// Of an object that is on one side only.
  void AddAlone(NetChange change) {
    list_.candidates_.push_back(std::make_unique<ChangeCandidate>());
    list_.candidates_.back()->change = std::move(change);
  }

  /// Whether another directory of the base took this one's name.
  static bool IsOtherDirectory(const NewName& name, const ChangeSide& before,
                               const ChangeSide& after) {
    return after.attr.type == FileType::kDirectory && !name.base_path.empty() &&
           name.base_path != before.base_path;
  }

  Status AddPair(const std::string& path, const std::string& old_path,
                 const NewName& name, BaseObject object, ChangeSide after) {
    const struct stat st = object.st;
    ChangeSide before = SideOf(std::move(object));
    ChangeCandidate& candidate =
        *list_.candidates_.emplace_back(std::make_unique<ChangeCandidate>());
    NetChange& change = candidate.change;
    change.path = path;
    const bool old_name_gone = old_.contains(old_path);
    if (before.attr.type != after.attr.type) {
      change.kind = ChangeKind::kTypeChanged;
      change.content = true;
    } else if (!old_path.empty() && (old_name_gone || expand_)) {
      change.kind = ChangeKind::kRenamed;
      change.old_path = old_path;
    } else if (IsOtherDirectory(name, before, after)) {
      change.kind = ChangeKind::kRenamed;
      change.old_path = name.base_path;
    }
    change.attributes = AttributesDiffer(before, after);
    candidate.same_object = name.base_path == before.base_path;
    const bool upper = name.inode != nullptr && name.inode->upper;
    if (change.kind != ChangeKind::kTypeChanged) {
      if (after.attr.type == FileType::kSymlink) {
        change.content = before.symlink != after.symlink;
      } else if (after.attr.type == FileType::kRegular) {
        const bool touched = upper && IsWritten(*name.inode, before.attr.size);
        change.content = before.attr.size != after.attr.size;
        candidate.compare =
            !change.content && (!candidate.same_object || touched);
        const bool is_known = candidate.compare && candidate.same_object &&
                              IsAsNoted(*name.inode, before.base_path, st) &&
                              HasOtherChecksum(*name.inode);
        if (is_known) {
          change.content = true;
          candidate.compare = false;
        }
      }
    }
    if (upper) {
      candidate.AddExtents(*name.inode);
      if (name.inode->attr().xattrs_owned || !candidate.same_object) {
        candidate.base_xattrs_of = before.base_path;
        candidate.xattrs = XattrsOf(*name.inode);
      }
    }
    change.before = std::move(before);
    change.after = std::move(after);
    return {};
  }

  [[nodiscard]] bool HasOtherChecksum(const Inode& inode) const {
    const auto checksum = WholeChecksum(inode);
    return checksum && txfs::HasOtherChecksum(preimages_.get(),
                                              *inode.record.base, *checksum);
  }

  /// Whether the base has at `path` the file that the transaction noted.
  [[nodiscard]] bool IsAsNoted(const Inode& inode, const std::string& path,
                               const struct stat& st) const {
    const auto& origin = inode.record.base;
    return origin && frozen_.tree.OriginOf(path, st) == *origin;
  }

  [[nodiscard]] std::map<std::string, std::string> XattrsOf(
      const Inode& inode) const {
    if (inode.attr().xattrs_owned || !inode.record.base) {
      return OwnXattrs(inode);
    }
    auto xattrs = frozen_.origins.BaseXattrs(inode.record.base->path);
    if (!xattrs) return {};
    return *std::move(xattrs);
  }

  Frozen& frozen_;
  const std::shared_ptr<Preimages> preimages_;
  const PlainFiles* const plain_;
  const std::vector<Inode*>& among_;
  bool expand_;
  std::map<std::string, BaseObject> old_;  // base paths
  std::map<std::string, NewName> new_;     // overlay paths
  std::vector<std::string> emptied_;       // as far as their records tell
  PathMemo paths_;
  ChangeList list_;
};

Result<ChangeList> ChangeList::Collect(Frozen& frozen, bool expand) {
  return ChangeCollector(frozen, nullptr, expand).Run();
}

Result<ChangeList> ChangeList::Collect(Frozen& frozen, PlainFiles plain,
                                       bool expand) {
  ChangeList list = TRY(ChangeCollector(frozen, &plain, expand).Run());
  for (auto& candidate : plain.list.candidates_) {
    list.Add(std::move(candidate));
  }
  return list;
}

void ChangeList::Add(std::unique_ptr<ChangeCandidate> candidate) {
  candidates_.push_back(std::move(candidate));
}

std::vector<std::string> ChangeList::Deleted() const {
  std::vector<std::string> paths;
  for (const auto& candidate : candidates_) {
    if (candidate->change.kind != ChangeKind::kDeleted) continue;
    paths.push_back(candidate->change.path);
  }
  return paths;
}

namespace {

bool IsTouched(const Inode& inode) {
  return inode.ContentChanged() || inode.AttributesChanged();
}

}  // namespace

void TouchedCount::Add(const Inode& inode) {
  if (inode.upper && inode.record.base) {
    if (inode.IsOrphan()) {
      deleted_.insert(inode.record.base->path);
    } else if (IsTouched(inode)) {
      ++count_;
    }
  }
  if (inode.names->upper == 0) return;
  for (const auto& [name, slot] : inode.names->slots) {
    if (slot.upper.kind == DentryKind::kInode && !inode.IsOrphan()) {
      const Inode* child = tree_.Find(slot.upper.ino);
      const bool is_base = child != nullptr && child->record.base;
      if (is_base) {
        std::string place;
        // A directory in the place of another one is just renamed.
        if (inode.record.base && !child->IsDirectory()) {
          place = JoinPath(inode.record.base->path, name);
        }
        moved_.emplace(child->record.base->path, std::move(place));
      }
      if (!is_base || !IsTouched(*child)) ++count_;  // else it is counted
    } else if (slot.upper.kind == DentryKind::kWhiteout && inode.record.base) {
      hidden_.push_back(JoinPath(inode.record.base->path, name));
    }
  }
}

/// What took the place of something else is a change of that, and its old name
/// is one more.
uint64_t TouchedCount::Total() const {
  const auto has_renamed = [&](const std::string& path) {
    const auto moved = moved_.find(path);
    return moved != moved_.end() && !deleted_.contains(moved->second) &&
           !moved_.contains(moved->second);
  };
  return count_ +
         static_cast<uint64_t>(std::ranges::count_if(
             hidden_, [&](const auto& path) { return !has_renamed(path); }));
}

void ChangeList::Keep(const std::function<bool(const NetChange&)>& wants) {
  std::erase_if(candidates_, [&](const auto& candidate) {
    return !wants(candidate->change);
  });
}

Result<size_t> ReadSide(Frozen& frozen, const ChangeSide& side, uint64_t offset,
                        MutableByteSpan out) {
  if (side.ino == kNoIno) {
    return frozen.origins.ReadBase(side.base_path, offset, out);
  }
  const Inode* inode = frozen.tree.Find(side.ino);
  if (inode == nullptr) return Fail(ESTALE, "the file is gone");
  return frozen.Read(*inode, offset, out);
}

namespace {

/// Where the sides of a change are read.
struct LiveSource {
  OverlayFilesystem& filesystem;

  Result<size_t> Read(const ChangeSide& side, uint64_t offset,
                      MutableByteSpan out) const {
    if (side.ino != kNoIno) return filesystem.Read(side.ino, offset, out);
    return filesystem.ReadBase(side.base_path, offset, out);
  }
  [[nodiscard]] Result<std::map<std::string, std::string>> BaseXattrs(
      const std::string& path) const {
    return filesystem.ReadBaseXattrs(path);
  }
};

struct FrozenSource {
  Frozen& frozen;

  Result<size_t> Read(const ChangeSide& side, uint64_t offset,
                      MutableByteSpan out) const {
    return ReadSide(frozen, side, offset, out);
  }
  [[nodiscard]] Result<std::map<std::string, std::string>> BaseXattrs(
      const std::string& path) const {
    return frozen.origins.BaseXattrs(path);
  }
};

/// Whether [from, to) of the two sides differ.
template <class Source>
Result<bool> RangeDiffers(Source& source, const ChangeSide& old_side,
                          const ChangeSide& new_side, uint64_t from,
                          uint64_t to) {
  if (from >= to) return false;
  Bytes before(std::min<uint64_t>(kCompareBytes, to - from));
  Bytes after(before.size());
  while (from < to) {
    const size_t want = std::min<uint64_t>(before.size(), to - from);
    const MutableByteSpan a = MutableByteSpan(before).first(want);
    const MutableByteSpan b = MutableByteSpan(after).first(want);
    const size_t read_a = TRY(source.Read(old_side, from, a));
    const size_t read_b = TRY(source.Read(new_side, from, b));
    if (read_a != read_b ||
        !std::ranges::equal(a.first(read_a), b.first(read_b))) {
      return true;
    }
    if (read_a == 0) return false;
    from += read_a;
  }
  return false;
}

template <class Source>
Result<bool> XattrsDiffer(Source& source, const std::string& base_path,
                          const std::map<std::string, std::string>& after) {
  return TRY(source.BaseXattrs(base_path)) != after;
}

}  // namespace

Result<bool> OrDiffers(Result<bool> differs) {
  if (differs) return differs;
  if (differs.error().code == ESTALE || IsClosedOrGone(differs.error())) {
    return true;
  }
  return differs;
}

template <class Source>
Status ChangeList::VisitFrom(Source& source, const ChangeVisitor& visit) {
  std::ranges::sort(candidates_, {}, [](const auto& candidate) -> const auto& {
    return candidate->change.path;
  });
  for (auto& owned : candidates_) {
    const std::unique_ptr<ChangeCandidate> candidate = std::move(owned);
    NetChange& change = candidate->change;
    if (candidate->compare) {
      const uint64_t size = change.after->attr.size;
      if (!candidate->same_object) candidate->extents = {{0, size, {}}};
      for (const Extent& extent : candidate->extents) {
        if (change.content) break;
        change.content = TRY(OrDiffers(
            RangeDiffers(source, *change.before, *change.after, extent.offset,
                         std::min(extent.end(), size))));
      }
    }
    if (!candidate->base_xattrs_of.empty()) {
      const bool differ = TRY(OrDiffers(
          XattrsDiffer(source, candidate->base_xattrs_of, candidate->xattrs)));
      change.attributes = change.attributes || differ;
    }
    const bool differs = change.content || change.attributes ||
                         change.kind != ChangeKind::kModified;
    if (differs) TRY(visit(std::move(change)));
  }
  return {};
}

Status ChangeList::Visit(OverlayFilesystem& filesystem,
                         const ChangeVisitor& visit) && {
  LiveSource source{filesystem};
  return VisitFrom(source, visit);
}

Result<std::vector<NetChange>> ChangeList::Settle(Frozen& frozen) && {
  FrozenSource source{frozen};
  std::vector<NetChange> changes;
  TRY(VisitFrom(source, [&](NetChange change) -> Status {
    changes.push_back(std::move(change));
    return {};
  }));
  return changes;
}

bool IsSelected(const NetChange& change,
                const std::vector<std::string>& below) {
  return below.empty() ||
         std::ranges::any_of(below, [&](const std::string& root) {
           return IsAtOrBelow(change.path, root) ||
                  (!change.old_path.empty() &&
                   IsAtOrBelow(change.old_path, root));
         });
}

std::vector<NetChange> SelectChanges(std::vector<NetChange> changes,
                                     const std::vector<std::string>& below) {
  std::erase_if(changes, [&](const NetChange& change) {
    return !IsSelected(change, below);
  });
  std::ranges::sort(changes, {}, &NetChange::path);
  return changes;
}

}  // namespace txfs
