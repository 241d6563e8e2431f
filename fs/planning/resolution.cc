#include "fs/planning/resolution.h"

#include <algorithm>
#include <ranges>

#include "fs/origin/preimages.h"
#include "fs/tree/own_xattrs.h"
#include "fs/tree/plan.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// Parts of [0, end) that no extent covers.
std::vector<std::pair<uint64_t, uint64_t>> GapsOf(const Inode& inode,
                                                  uint64_t end) {
  std::vector<std::pair<uint64_t, uint64_t>> gaps;
  uint64_t position = 0;
  for (const auto& [offset, extent] : inode.extents) {
    if (offset >= end) break;
    if (position < offset) gaps.emplace_back(position, offset);
    position = extent.end();
  }
  if (position < end) gaps.emplace_back(position, end);
  return gaps;
}

/// Attributes of `now` that `attr` still has as `origin` had them.
void TakeAttributes(const BaseOrigin& origin, const struct stat& now,
                    Attr& attr) {
  if (attr.mode == (origin.mode & 07777)) attr.mode = now.st_mode & 07777;
  if (attr.uid == origin.uid) attr.uid = now.st_uid;
  if (attr.gid == origin.gid) attr.gid = now.st_gid;
}

/// Whether both sides gave an object other attributes, and not the same.
bool AttributesClash(const Attr& ours, const BaseOrigin& origin,
                     const struct stat& now) {
  const auto clash = [](uint32_t mine, uint32_t was, uint32_t theirs) {
    return mine != was && theirs != was && mine != theirs;
  };
  return clash(ours.mode, origin.mode & 07777, now.st_mode & 07777) ||
         clash(ours.uid, origin.uid, now.st_uid) ||
         clash(ours.gid, origin.gid, now.st_gid);
}

}  // namespace

Resolution::~Resolution() {
  for (const Done& done : std::views::reverse(done_)) {
    if (done.edit) TakeBack(*done.edit);
    if (!done.hidden) continue;
    // At once: what nothing leads to is not kept.
    Inode* parent = frozen_.tree.Find(done.hidden->parent);
    Inode* child = frozen_.tree.Find(done.child);
    if (parent == nullptr || child == nullptr) continue;
    frozen_.tree.Cache(*parent, done.hidden->name, *child);
  }
  // The last first: with the first the segment goes.
  for (const StagedContent& staged : std::views::reverse(staged_)) {
    frozen_.journal.Abandon(staged);
  }
}

void Resolution::TakeBack(const Edit& edit) {
  Apply(Inverse(edit), frozen_.tree);
  const auto* attributes = std::get_if<AttrEdit>(&edit);
  if (attributes == nullptr) return;
  // The commit may have taken it for an orphan.
  Inode* inode = frozen_.tree.Find(attributes->ino);
  if (inode == nullptr || inode->IsOrphan()) return;
  if (Inode::Orphan* was = inode->orphan.get()) was->pinned_base.reset();
}

void Resolution::Keep() {
  done_.clear();
  staged_.clear();
}

void Resolution::Do(Edit edit) {
  Apply(edit, frozen_.tree);
  done_.push_back({.edit = std::move(edit), .hidden = {}, .child = kNoIno});
}

void Resolution::Stay(const Drift& drift, std::string_view why) {
  remaining_.emplace_back(drift.Describe()).note = why;
}

Result<std::vector<Conflict>> Resolution::Resolve(
    const std::vector<Drift>& drifts, const ResolveOptions& options) {
  options_ = options;
  for (const Drift& drift : drifts) {
    if (!drift.conflict) Follow(drift);
  }
  for (const Drift& drift : drifts) {
    if (!drift.conflict) continue;
    const size_t before = remaining_.size();
    switch (options.on_conflict) {
      case OnConflict::kFail:
        Stay(drift);
        break;
      case OnConflict::kMine:
        TRY(TakeMine(drift));
        break;
      case OnConflict::kTheirs:
        TakeTheirs(drift);
        break;
      case OnConflict::kMerge:
        TRY(MergeDrift(drift));
        break;
    }
    if (remaining_.size() == before) resolved_.push_back(drift.Describe());
  }
  const bool stops = !remaining_.empty();
  const bool marked = std::ranges::any_of(
      merges_, [](const Merge& merge) { return !merge.text.clean; });
  if (!stops || marked) {
    for (const Merge& merge : merges_) TRY(WriteMerge(merge, stops));
  }
  return remaining_;
}

// --- one side gives way ----------------------------------------------------

/// Only one side did something, or both did the same.
void Resolution::Follow(const Drift& drift) {
  const Inode& inode = *frozen_.tree.Find(drift.ino);
  if (inode.IsOrphan()) return;
  if (drift.nameless || drift.theirs == TheirChange::kDeleted) {
    DropName(inode);
    return;
  }
  Rebind(
      inode, drift,
      {.content = drift.theirs == TheirChange::kContent, .attributes = true});
}

/// The name in the base is to go, whatever it leads to.
void Resolution::DropName(const Inode& inode) {
  for (const Inode::Link& link : inode.links) {
    stale_names_.push_back({link.parent, link.name});
  }
  Attr gone = inode.attr();
  gone.nlink = 0;
  Do(AttrEdit{inode.ino, inode.attr(), gone});
}

Status Resolution::TakeMine(const Drift& drift) {
  // What has the name in the base goes to the vault in any case.
  if (drift.theirs == TheirChange::kCreated) return {};
  const Inode& inode = *frozen_.tree.Find(drift.ino);
  if (inode.IsOrphan()) return {};
  if (drift.nameless) {
    const bool gone =
        drift.ours == OurChange::kDeleted || drift.ours == OurChange::kReplaced;
    if (gone) DropName(inode);
    if (!gone) Stay(drift, "its other names are not known");
    return {};
  }
  bool can = true;
  if (drift.theirs == TheirChange::kDeleted ||
      drift.theirs == TheirChange::kType || drift.another) {
    can = TRY(MakeNew(inode));
  } else {
    const bool content = drift.theirs == TheirChange::kContent;
    const bool modified = inode.ContentChanged();
    if (content && modified) can = TRY(CopyUp(inode));
    if (can) Rebind(inode, drift, {.content = content && !modified});
  }
  if (!can) Stay(drift, "its earlier content is not kept");
  return {};
}

void Resolution::TakeTheirs(const Drift& drift) {
  const Inode* inode = frozen_.tree.Find(drift.ino);
  if (inode != nullptr && inode->IsDirectory() && !inode->IsOrphan() &&
      drift.theirs == TheirChange::kAttributes) {
    // What the transaction did below it is no conflict.
    InodeRecord after = Rebound(*inode, drift, {});
    after.attr.mode = drift.now.st_mode & 07777;
    after.attr.uid = drift.now.st_uid;
    after.attr.gid = drift.now.st_gid;
    after.attr.xattrs_owned = false;
    Do(InodeEdit{inode->ino, inode->record, std::move(after)});
    const auto own = *inode->own->xattrs;
    for (const auto& [name, value] : own) {
      Do(XattrEdit{inode->ino, name, value, std::nullopt});
    }
    return;
  }
  std::string path = drift.path;
  if (inode != nullptr) {
    path = frozen_.tree.VisiblePath(*inode).value_or(drift.path);
  } else if (drift.ours == OurChange::kDeleted) {
    // Something new in a directory that we deleted: that comes back.
    const Inode* directory =
        frozen_.tree.FindBaseDirectory(ParentPath(drift.path));
    if (directory != nullptr && directory->IsOrphan()) {
      path = ParentPath(drift.path);
    }
  }
  dropped_.push_back(std::move(path));
}

// --- what the transaction is based on --------------------------------------

InodeRecord Resolution::Rebound(const Inode& inode, const Drift& drift,
                                Take take) const {
  const struct stat& now = drift.now;
  InodeRecord after = inode.record;
  const BaseOrigin& before = *inode.record.base;
  after.base = frozen_.tree.OriginOf(drift.path, now);
  // That its filesystem is not mounted is no change of it, and stops the plan.
  if (after.base->dev == 0) after.base->dev = before.dev;
  Attr& attr = after.attr;
  const int64_t more = int64_t{after.base->nlink} - before.nlink;
  if (inode.IsDirectory()) {
    attr.nlink = CountSubdirectories(attr.nlink, more);
  } else if (attr.nlink != 0) {
    attr.nlink = static_cast<uint32_t>(std::max<int64_t>(attr.nlink + more, 1));
  }
  if (take.attributes) TakeAttributes(before, now, attr);
  if (!take.content || inode.IsDirectory()) return after;
  attr.size = after.base->size;
  if (attr.type == FileType::kRegular) attr.base_limit = attr.size;
  if (attr.mtime == before.mtime) attr.mtime = after.base->mtime;
  if (attr.type == FileType::kSymlink) {
    after.symlink = frozen_.base.ReadLink(drift.path).value_or(after.symlink);
  }
  return after;
}

/// Names that led to a file of several lead to something else by now.
void Resolution::DropOldNames(const Inode& inode) {
  const std::vector<Inode::Link> links = inode.links.ToVector();
  for (const Inode::Link& link : links) {
    Inode* parent = frozen_.tree.Find(link.parent);
    if (parent == nullptr || !parent->record.base) continue;
    if (parent->CachedChild(link.name) != &inode) continue;
    const auto st =
        frozen_.base.Stat(JoinPath(parent->record.base->path, link.name));
    if (st && frozen_.tree.IsOrigin(inode, *st)) continue;
    done_.push_back({.edit = {}, .hidden = link, .child = inode.ino});
    stale_names_.push_back({link.parent, link.name});
    frozen_.tree.DropCached(*parent, link.name);
  }
}

void Resolution::Rebind(const Inode& inode, const Drift& drift, Take take) {
  // Without its last name it would look deleted.
  const InodeRecord before = inode.record;
  InodeRecord after = Rebound(inode, drift, take);
  if (drift.path != before.base->path) DropOldNames(inode);
  Do(InodeEdit{inode.ino, before, std::move(after)});
}

Result<ContentRef> Resolution::Stage(ByteSpan bytes) {
  if (segment_ == 0) segment_ = TRY(frozen_.journal.NewSegment());
  staged_.push_back(TRY(frozen_.journal.Stage(bytes, segment_, segment_end_)));
  segment_end_ += bytes.size();
  return staged_.back().ref;
}

Result<bool> Resolution::CopyUp(const Inode& inode) {
  const Attr& attr = inode.attr();
  if (attr.type != FileType::kRegular) return true;
  const auto gaps = GapsOf(inode, std::min(attr.base_limit, attr.size));
  if (gaps.empty()) return true;
  const std::optional<Bytes> old =
      frozen_.origins.OldContent(*inode.record.base);
  if (!old) return false;
  ExtentEdit extents{.ino = inode.ino};
  for (const auto& [from, to] : gaps) {
    const ByteSpan part = ByteSpan(*old).subspan(from, to - from);
    extents.after.push_back({from, part.size(), TRY(Stage(part))});
  }
  Attr own = attr;
  own.base_limit = 0;
  Do(AttrEdit{inode.ino, attr, own});
  Do(std::move(extents));
  return true;
}

Status Resolution::Replace(const Inode& inode, InodeRecord record,
                           ByteSpan content) {
  std::vector<Extent> all;
  if (!content.empty()) {
    all.push_back({0, content.size(), TRY(Stage(content))});
  }
  record.attr.size = content.size();
  record.attr.base_limit = 0;
  record.attr.own_segment = 0;
  record.attr.mtime = record.attr.ctime = frozen_.Now();
  ExtentEdit extents = PlanExtents(inode, 0, UINT64_MAX, all);
  Do(InodeEdit{inode.ino, inode.record, std::move(record)});
  Do(std::move(extents));
  return {};
}

// --- what the base no longer has -------------------------------------------

Result<bool> Resolution::MakeNew(const Inode& inode) {
  if (!TRY(CopyUp(inode))) return false;
  const std::string path = inode.record.base->path;
  if (!inode.upper) Do(InodeEdit{inode.ino, std::nullopt, inode.record});
  const uint32_t names = frozen_.tree.UpperNames(inode);
  const std::vector<Inode::Link> others = OtherNames(inode);
  Inode* parent = nullptr;
  if (names == 0 || HasNotedName(inode)) {
    parent = TRY(DirectoryAt(std::string(ParentPath(path))));
  }
  const size_t all = names + others.size() + (parent != nullptr ? 1 : 0);
  InodeRecord after = inode.record;
  after.base.reset();
  after.attr.base_limit = 0;
  after.attr.nlink = inode.IsDirectory() ? 2 : static_cast<uint32_t>(all);
  XattrMap xattrs;
  if (inode.attr().type == FileType::kRegular && !inode.attr().xattrs_owned) {
    xattrs = TRY(frozen_.OldXattrs(inode));
  }
  if (!xattrs.empty()) after.attr.xattrs_owned = true;
  Do(InodeEdit{inode.ino, inode.record, std::move(after)});
  for (auto& [name, value] : xattrs) {
    Do(XattrEdit{inode.ino, name, std::nullopt, std::move(value)});
  }
  if (inode.IsDirectory()) renewed_[path] = inode.ino;
  if (parent != nullptr) Enter(*parent, std::string(BaseName(path)), inode.ino);
  for (const Inode::Link& link : others) {
    Enter(*frozen_.tree.Find(link.parent), link.name, inode.ino);
  }
  return true;
}

/// Whether it is still to be seen where the base had it.
bool Resolution::HasNotedName(const Inode& inode) const {
  const std::string& path = inode.record.base->path;
  return std::ranges::any_of(inode.links, [&](const Inode::Link& link) {
    return frozen_.tree.BasePathOf(link) == path;
  });
}

/// The names, but for the noted one, by which the base still has the file.
std::vector<Inode::Link> Resolution::OtherNames(const Inode& inode) const {
  std::vector<Inode::Link> names;
  // There they may be other files by the time of the commit.
  if (IsOverlay(frozen_.base.root())) return names;
  if (inode.IsDirectory()) return names;
  for (const Inode::Link& link : inode.links) {
    const auto path = frozen_.tree.BasePathOf(link);
    if (!path || path == inode.record.base->path) continue;
    const auto st = frozen_.base.Stat(*path);
    if (st && frozen_.tree.IsOrigin(inode, *st)) names.push_back(link);
  }
  return names;
}

void Resolution::Enter(const Inode& parent, const std::string& name, Ino ino) {
  if (!parent.upper) Do(InodeEdit{parent.ino, std::nullopt, parent.record});
  DentryValue before;
  const Inode* child = parent.CachedChild(name);
  const bool hides = child != nullptr && child->ino == ino;
  if (const Slot* slot = parent.UpperSlot(name)) before = slot->upper;
  Do(DentryEdit{parent.ino, name, before, {DentryKind::kInode, ino}});
  if (!hides) return;
  done_.back().hidden = {parent.ino, name};
  done_.back().child = ino;
}

/// The directory that has, or had, base path `path`: made again if need be.
Result<Inode*> Resolution::DirectoryAt(const std::string& path) {
  const auto renewed = renewed_.find(path);
  if (renewed != renewed_.end()) return frozen_.tree.Find(renewed->second);
  Inode* known = frozen_.tree.FindBaseDirectory(path);
  const auto st = frozen_.base.Stat(path);
  const bool stands = st && S_ISDIR(st->st_mode);
  if (known != nullptr && stands) {
    // Another one may have taken its place, and nothing of ours is in it.
    if (!known->upper && !frozen_.tree.IsOrigin(*known, *st)) {
      const InodeRecord before = known->record;
      Do(InodeEdit{known->ino, std::nullopt, before});
      Do(InodeEdit{known->ino, before, frozen_.tree.RecordOf({path, *st, {}})});
    }
    return known;
  }
  if (known != nullptr) {
    TRY(MakeNew(*known));
    return known;
  }
  Inode* parent = TRY(DirectoryAt(std::string(ParentPath(path))));
  if (stands) {
    return &frozen_.tree.AdoptBase(*parent, BaseName(path), {path, *st, {}});
  }
  return &MakeDirectory(*parent, path);
}

/// One of which nothing is known but that it was there.
Inode& Resolution::MakeDirectory(Inode& parent, const std::string& path) {
  InodeRecord record;
  record.attr = parent.attr();
  record.attr.nlink = 2;
  record.attr.xattrs_owned = false;
  const Ino ino = frozen_.tree.AllocateIno();
  Do(InodeEdit{ino, std::nullopt, std::move(record)});
  renewed_[path] = ino;
  Enter(parent, std::string(BaseName(path)), ino);
  return *frozen_.tree.Find(ino);
}

// --- merging ---------------------------------------------------------------

/// Sides that changed different things are both taken.
Status Resolution::MergeDrift(const Drift& drift) {
  const bool content = drift.theirs == TheirChange::kContent;
  const bool merges = (content || drift.theirs == TheirChange::kAttributes) &&
                      drift.ours != OurChange::kDeleted && !drift.nameless;
  if (!merges) {
    Stay(drift);
    return {};
  }
  const bool replaced = drift.ours == OurChange::kReplaced;
  const Inode* ours = frozen_.tree.Find(replaced ? drift.at_path : drift.ino);
  const BaseOrigin& origin = *frozen_.tree.Find(drift.ino)->record.base;
  const bool alike = ours != nullptr && (!replaced || !ours->record.base) &&
                     TypeOfMode(drift.now.st_mode) == ours->attr().type &&
                     (replaced || !drift.another);
  if (!alike || AttributesClash(ours->attr(), origin, drift.now) ||
      (!content && ours->attr().xattrs_owned) ||
      (!replaced &&
       XattrsClash(*ours, TRY(frozen_.origins.BaseXattrs(drift.path))))) {
    Stay(drift);
    return {};
  }
  if (replaced && HasTrackedXattrs(frozen_.base, drift.path)) {
    Stay(drift, "has extended attributes");
    return {};
  }
  if (content && (replaced || ours->ContentChanged())) {
    return MergeText(drift, *ours);
  }
  if (!replaced) {
    Rebind(*ours, drift, {.content = content, .attributes = true});
    return {};
  }
  Attr attr = ours->attr();
  TakeAttributes(origin, drift.now, attr);
  Do(AttrEdit{ours->ino, ours->attr(), attr});
  return {};
}

Status Resolution::MergeText(const Drift& drift, const Inode& target) {
  const BaseOrigin& origin = *frozen_.tree.Find(drift.ino)->record.base;
  const bool again = std::ranges::any_of(
      merges_, [&](const Merge& merge) { return merge.target == target.ino; });
  if (again) {
    Stay(drift, "its new content is already merged with another file");
    return {};
  }
  const std::optional<Bytes> ancestor = frozen_.origins.OldContent(origin);
  const auto ours = TRY(ReadOurs(target));
  const auto theirs = ReadTheirs(drift);
  if (!ancestor || !ours || !theirs) {
    Stay(drift,
         ancestor ? "too large to merge" : "its earlier content is not kept");
    return {};
  }
  auto merged = TRY(options_.merge({.path = drift.path,
                                    .ancestor = AsText(*ancestor),
                                    .ours = AsText(*ours),
                                    .theirs = AsText(*theirs)}));
  if (!merged || merged->content.size() > kRecordContentMax) {
    Stay(drift, merged ? "too large to merge" : "is not text");
    return {};
  }
  const bool clean = merged->clean;
  if (!clean) {
    Stay(drift, options_.markers ? kHasMarkers : "does not merge");
  }
  if (clean || options_.markers) {
    merges_.push_back({&drift, target.ino, std::move(*merged)});
  }
  return {};
}

Result<std::optional<Bytes>> Resolution::ReadOurs(const Inode& inode) {
  const uint64_t size = inode.attr().size;
  if (size > kRecordContentMax) return std::optional<Bytes>();
  // The base's part is another one by now.
  std::optional<Bytes> old;
  if (inode.record.base && inode.attr().base_limit != 0) {
    old = frozen_.origins.OldContent(*inode.record.base);
    if (!old) return std::optional<Bytes>();
  }
  Bytes content(size);
  TRY(frozen_.Read(inode, 0, content));
  const uint64_t limit = std::min(inode.attr().base_limit, size);
  for (const auto& [from, to] : GapsOf(inode, limit)) {
    std::ranges::copy(ByteSpan(*old).subspan(from, to - from),
                      content.begin() + static_cast<ptrdiff_t>(from));
  }
  return std::optional(std::move(content));
}

std::optional<Bytes> Resolution::ReadTheirs(const Drift& drift) {
  const auto size = static_cast<uint64_t>(drift.now.st_size);
  if (size > kRecordContentMax) return std::nullopt;
  const auto fd = frozen_.base.OpenFile(drift.path);
  if (!fd) return std::nullopt;
  Bytes content(size);
  const auto n = ReadFully((*fd)->get(), 0, content);
  if (!n || *n != size) return std::nullopt;
  return content;
}

Status Resolution::WriteMerge(const Merge& merge, bool lasting) {
  Inode& target = *frozen_.tree.Find(merge.target);
  const Inode& based = *frozen_.tree.Find(merge.drift->ino);
  const struct stat& now = merge.drift->now;
  InodeRecord after = target.record;
  std::vector<Edit> along;
  TakeAttributes(*based.record.base, now, after.attr);
  const InodeRecord rebound = Rebound(based, *merge.drift, {});
  if (lasting && &based == &target) {
    after.base = rebound.base;
    after.attr.nlink = rebound.attr.nlink;
  } else if (lasting) {
    along.push_back(InodeEdit{based.ino, based.record, rebound});
  }
  rewritten_.push_back(target.ino);
  if (!lasting) {
    TRY(Replace(target, std::move(after), AsBytes(merge.text.content)));
    if (!based.IsOrphan()) Rebind(based, *merge.drift, {});
    return {};
  }
  TRY(frozen_.Rewrite(target, std::move(after), AsBytes(merge.text.content),
                      std::move(along)));
  // The ancestor of the next merge.
  const auto fd = frozen_.base.OpenFile(merge.drift->path);
  const auto preimages = frozen_.origins.preimages();
  if (fd && preimages) {
    preimages->Save(Fingerprint::Of(*rebound.base), (*fd)->get());
  }
  return {};
}

}  // namespace txfs
