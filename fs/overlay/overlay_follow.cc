#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fs/overlay/linked_names.h"
#include "fs/overlay/overlay.h"

namespace txfs {
namespace {

/// Whether `inode` is a file that was touched, and left as it was, by no name
/// any more: others gave what it was in the base another one, under which it is
/// another inode.
bool IsNothing(const Tree& tree, const Inode& inode) {
  return !inode.IsDirectory() && inode.upper && Tree::LacksName(inode) &&
         ((inode.lost && inode.record.base->nlink == 1) ||
          tree.IsShadowed(inode)) &&
         inode.IsUnchanged() && !inode.retired;
}

/// Whether `inode` is a directory that the base has no more, and in which there
/// is nothing of ours: names came and went. That some were deleted counts, for
/// others may bring it back.
bool IsLostAndEmpty(const Tree& tree, const Inode& inode) {
  if (!inode.IsDirectory() || !inode.lost || !inode.upper ||
      !inode.record.base || inode.IsOrphan() || inode.AttributesChanged() ||
      inode.known_children != 0 || inode.upper_names != 0 ||
      inode.links.empty()) {
    return false;
  }
  return std::ranges::all_of(inode.links, [&](const Inode::Link& link) {
    const Inode* parent = tree.Find(link.parent);
    return parent != nullptr && parent->UpperSlot(link.name) == nullptr;
  });
}

/// Whether the base has `inode` exactly as it was, or cannot be asked.
bool IsStillThere(const Tree& tree, const BaseDirectory& base,
                  const Inode& inode) {
  const BaseOrigin& origin = *inode.record.base;
  const auto object = FindObject(base, origin.path);
  if (!object) return true;
  return *object && tree.OriginOf(origin.path, (*object)->st) == origin;
}

/// The record of a directory whose mode and owner only others changed, if so.
std::optional<InodeRecord> FollowAttributes(const Tree& tree,
                                            const BaseDirectory& base,
                                            const Inode& inode) {
  const bool may_follow = inode.IsDirectory() && inode.record.base &&
                          !inode.IsOrphan() && !inode.lost;
  if (!may_follow) return {};
  InodeRecord after = inode.record;
  BaseOrigin& origin = *after.base;
  Attr& attr = after.attr;
  const bool ours = attr.mode != (origin.mode & 07777) ||
                    attr.uid != origin.uid || attr.gid != origin.gid;
  if (ours) return {};
  const auto st = base.Stat(origin.path);
  if (!st || !tree.IsOrigin(inode, *st)) return {};
  origin.mode = st->st_mode;
  origin.uid = st->st_uid;
  origin.gid = st->st_gid;
  attr.mode = origin.mode & 07777;
  attr.uid = origin.uid;
  attr.gid = origin.gid;
  if (after == inode.record) return {};
  return after;
}

/// The record of a file of which the transaction only deleted some names, and
/// that others changed by the rest.
std::optional<InodeRecord> FollowContent(const Tree& tree,
                                         const BaseDirectory& base,
                                         const Inode& inode) {
  const bool may_follow = inode.attr().type == FileType::kRegular &&
                          inode.record.base && !inode.IsOrphan() &&
                          !inode.lost && inode.IsUnchanged() &&
                          inode.attr().nlink < inode.record.base->nlink &&
                          tree.UpperNames(inode) == 0;
  if (!may_follow) return {};
  const BaseOrigin& origin = *inode.record.base;
  const auto st = base.Stat(origin.path);
  if (!st || !tree.IsOrigin(inode, *st)) return {};
  const bool shown = std::ranges::any_of(inode.links, [&](const auto& link) {
    return tree.BasePathOf(link) == origin.path;
  });
  if (!shown) return {};
  InodeRecord after = tree.RecordOf({origin.path, *st, {}});
  // What tells of its names stays what it was: others may have moved them.
  after.attr.nlink = inode.attr().nlink;
  after.attr.atime = inode.attr().atime;
  after.attr.ctime = inode.attr().ctime;
  after.base->nlink = origin.nlink;
  after.base->ctime = origin.ctime;
  if (after == inode.record) return {};
  return after;
}

}  // namespace

Status OverlayFilesystem::Frozen::Follow(Inode& inode, InodeRecord before,
                                         std::optional<InodeRecord> after,
                                         std::vector<Edit> names) {
  Change change{.op = Op::kFollow,
                .time = Now(),
                .pid = static_cast<uint32_t>(::getpid()),
                .uid = ::geteuid(),
                .exe = "txfs",
                .path = tree.PathOf(inode),
                .edits = std::move(names)};
  change.edits.push_back(
      InodeEdit{inode.ino, std::move(before), std::move(after)});
  return [&]() NO_THREAD_SAFETY_ANALYSIS -> Status {  // held by WhileFrozen
    TRY(filesystem.AppendAndApply(change, nullptr));
    return {};
  }();
}

/// It stays under the names that it has, which are those of the base.
Status OverlayFilesystem::Frozen::MakePristine(Inode& inode) {
  const Ino ino = inode.ino;
  const std::vector<Inode::Link> links = inode.links;
  std::vector<Edit> names;
  for (const Inode::Link& link : links) {
    const Slot* slot = tree.Find(link.parent)->UpperSlot(link.name);
    if (slot == nullptr) continue;
    names.push_back(DentryEdit{link.parent, link.name, slot->upper, {}});
  }
  TRY(Follow(inode, inode.record, {}, std::move(names)));
  Inode* left = tree.Find(ino);
  if (left == nullptr) return {};
  for (const Inode::Link& link : links) {
    Inode* parent = tree.Find(link.parent);
    if (parent == nullptr || parent->slots.contains(link.name)) continue;
    tree.Cache(*parent, link.name, *left);
  }
  return {};
}

StaleCaches OverlayFilesystem::Frozen::FollowNames(
    const std::vector<Inode*>& changed) {
  LookedFor found = LookForChanged(tree, base, changed);
  for (LookedFor::Noted& was : found.noted) {
    Inode& inode = *tree.Find(was.ino);
    InodeRecord before = inode.record;
    before.base->path = was.before;
    if (Follow(inode, std::move(before), inode.record)) continue;
    inode.record.base->path = std::move(was.before);
  }
  StaleCaches went;
  for (const LookedFor::Gone& gone : found.gone) went.Append(Delete(gone));
  std::vector<Ino> several;
  // A directory may have been kept for one.
  for (const StaleCaches::Name& name : went.names) {
    several.push_back(name.parent);
  }
  for (const Inode* inode : changed) {
    if (inode->links.size() > 1) several.push_back(inode->ino);
  }
  StaleCaches stale = Refresh(several);
  stale.Append(went);
  std::ranges::move(found.shown, std::back_inserter(stale.names));
  std::ranges::copy(found.stale, std::back_inserter(stale.inodes));
  return stale;
}

/// As if the transaction had deleted the last name that it showed.
StaleCaches OverlayFilesystem::Frozen::Delete(const LookedFor::Gone& gone) {
  Inode& inode = *tree.Find(gone.ino);
  InodeRecord after = inode.record;
  after.attr.nlink = 0;
  after.base->path = gone.path;
  const std::vector<Inode::Link> links = inode.links;
  if (!Follow(inode, inode.record, std::move(after))) return {};
  StaleCaches stale;
  stale.inodes.push_back(gone.ino);
  for (const Inode::Link& link : links) {
    stale.names.push_back({link.parent, link.name});
    tree.DropLink(*tree.Find(gone.ino), link);
  }
  if (Inode* left = tree.Find(gone.ino)) {
    // Who has it open must not write what nobody would see.
    left->taken = left->IsOrphan();
    // Should a rollback bring it back, it is looked for again.
    left->lost = left->sought = false;
  }
  return stale;
}

bool OverlayFilesystem::Frozen::IsHalted() const {
  return [&]() NO_THREAD_SAFETY_ANALYSIS { return filesystem.halted_; }();
}

StaleCaches OverlayFilesystem::Frozen::FollowBase() {
  return FollowBase(tree.upper());
}

StaleCaches OverlayFilesystem::Frozen::FollowBase(
    const std::vector<Inode*>& changed) {
  // A commit that is half-way has made of the base what it is.
  if (IsHalted()) return {};
  base.DropCache();
  StaleCaches stale = FollowNames(changed);
  stale.Append(FollowTouched(changed));
  return stale;
}

StaleCaches OverlayFilesystem::Frozen::FollowTouched(
    const std::vector<Inode*>& all) {
  StaleCaches stale;
  std::vector<Inode*> as_they_were, nothing;
  std::vector<std::pair<Inode*, InodeRecord>> changed;
  for (Inode* at : all) {
    Inode& inode = *at;
    if (IsNothing(tree, inode)) {
      nothing.push_back(&inode);
    } else if (tree.IsAsItWas(inode)) {
      if (!IsStillThere(tree, base, inode)) as_they_were.push_back(&inode);
    } else if (auto after = inode.IsDirectory()
                                ? FollowAttributes(tree, base, inode)
                                : FollowContent(tree, base, inode)) {
      changed.emplace_back(&inode, std::move(*after));
    }
  }
  // What cannot be journaled stays what it is, and its commit follows.
  for (auto& [inode, after] : changed) {
    if (!Follow(*inode, inode->record, std::move(after))) continue;
    stale.inodes.push_back(inode->ino);
  }
  for (Inode* inode : nothing) std::ignore = Follow(*inode, inode->record, {});
  std::vector<Ino> pristine;
  for (Inode* inode : as_they_were) {
    const Ino ino = inode->ino;
    if (MakePristine(*inode)) pristine.push_back(ino);
  }
  stale.Append(Refresh(pristine));
  stale.Append(DropLostDirectories());
  return stale;
}

/// With what is in one goes what the one above it was kept for.
StaleCaches OverlayFilesystem::Frozen::DropLostDirectories() {
  StaleCaches stale;
  for (;;) {
    std::vector<Inode*> empty;
    tree.ForEachUpper([&](Inode& inode) {
      if (IsLostAndEmpty(tree, inode)) empty.push_back(&inode);
    });
    std::vector<Ino> pristine;
    for (Inode* inode : empty) {
      const Ino ino = inode->ino;
      if (MakePristine(*inode)) pristine.push_back(ino);
    }
    if (pristine.empty()) return stale;
    stale.Append(Refresh(pristine));
  }
}

}  // namespace txfs
