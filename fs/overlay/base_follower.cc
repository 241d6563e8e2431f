#include "fs/overlay/base_follower.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <string>
#include <tuple>
#include <utility>

#include "fs/host/xattrs.h"
#include "fs/overlay/handover.h"
#include "fs/posix/acl.h"
#include "fs/posix/path_event.h"

namespace txfs {
namespace {

/// Whether `inode` is an upper file without changes and without a name. Another
/// program gave the base object another name, which leads to another inode.
bool IsNothing(const Tree& tree, const Inode& inode) {
  return !inode.IsDirectory() && inode.upper && Tree::LacksName(inode) &&
         ((inode.lost && inode.record.base->nlink == 1) ||
          tree.IsShadowed(inode)) &&
         inode.IsUnchanged() && !inode.orphan->retired;
}

/// Whether `inode` is a directory that the base deleted and that has no upper
/// names. Whiteouts count: another program may bring the directory back.
bool IsLostAndEmpty(const Tree& tree, const Inode& inode) {
  if (!inode.IsDirectory() || !inode.lost || !inode.upper ||
      !inode.record.base || inode.IsOrphan() || inode.AttributesChanged() ||
      inode.names->children != 0 || inode.names->upper != 0 ||
      inode.links.empty()) {
    return false;
  }
  return std::ranges::all_of(inode.links, [&](const Inode::Link& link) {
    const Inode* parent = tree.Find(link.parent);
    return parent != nullptr && parent->UpperSlot(link.name) == nullptr;
  });
}

/// Whether the base has `inode` exactly as recorded, or cannot be read.
bool IsStillThere(const Tree& tree, const BaseDirectory& base,
                  const Inode& inode) {
  const BaseOrigin& origin = *inode.record.base;
  const auto object = FindObject(base, origin.path);
  if (!object) return true;
  return *object && tree.OriginOf(origin.path, (*object)->st) == origin;
}

/// The updated record of a directory whose mode and owner only other programs
/// changed, if they did.
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

/// The updated record of a file of which the transaction only deleted some
/// names, and which another program changed through another name.
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
  // Link count and ctime stay: other programs may have moved names.
  after.attr.nlink = inode.attr().nlink;
  after.attr.atime = inode.attr().atime;
  after.attr.ctime = inode.attr().ctime;
  after.base->nlink = origin.nlink;
  after.base->ctime = origin.ctime;
  if (after == inode.record) return {};
  return after;
}

/// The object of the base at a path.
struct Sight {
  bool known = true;  ///< false: the base could not be read
  std::optional<BaseObject> object;

  [[nodiscard]] bool IsDirectory() const {
    return object && S_ISDIR(object->st.st_mode);
  }
};

StaleCaches::Watched WasThere(const Inode& inode, const Inode::Link& link) {
  return {.parent = link.parent,
          .name = link.name,
          .was_there = true,
          .was_directory = inode.IsDirectory(),
          .was = inode.ino};
}

bool IsIdentical(const BaseObject& a, const BaseObject& b) {
  return a.st.st_dev == b.st.st_dev && a.st.st_ino == b.st.st_ino &&
         (a.st.st_mode & S_IFMT) == (b.st.st_mode & S_IFMT);
}

/// Compares the tree with the base while everything is frozen.
class Refresher {
 public:
  Refresher(Tree& tree, const BaseDirectory& base, BaseFileCache& files)
      : tree_(tree), base_(base), files_(files) {}

  StaleCaches Run() {
    tree_.DropUnheld();
    tree_.ForEach([&](const Inode& inode) { Collect(inode); });
    LookAtAll();
    tree_.DropUnheld();
    KeepDeleted(tree_, stale_);
    return std::move(stale_);
  }

  StaleCaches Run(std::span<const Ino> inos) {
    for (const Ino ino : inos) {
      if (const Inode* inode = tree_.Find(ino)) Collect(*inode);
    }
    LookAtAll();
    KeepDeleted(tree_, stale_);
    return std::move(stale_);
  }

 private:
  struct Name {
    Inode::Link link;
    Sight sight;
  };

  void Collect(const Inode& inode) {
    if (!inode.record.base || inode.IsOrphan()) return;
    if (inode.IsDirectory()) {
      directories_.emplace_back(inode.record.base->path, inode.ino);
    } else if (!inode.upper) {
      files_known_.push_back(inode.ino);
    } else if (inode.links.size() > 1) {
      linked_.push_back(inode.ino);
    }
  }

  void LookAtAll() {
    std::ranges::sort(directories_);
    for (const auto& [path, ino] : directories_) LookAtDirectory(path, ino);
    for (const Ino ino : files_known_) {
      Inode* inode = tree_.Find(ino);
      if (inode != nullptr && !inode->IsOrphan()) LookAtFile(*inode);
    }
    // Children first: a directory goes when nothing is left in it, now or with
    // its last name below. It must not take in what ShowElsewhere finds.
    for (const Ino ino : gone_ | std::views::reverse) DropDirectory(ino);
    DropNameless();
    for (const Ino ino : linked_) DropLostNames(*tree_.Find(ino));
  }

  [[nodiscard]] Sight Look(const std::string& path) const {
    auto object = FindObject(base_, path);
    if (!object) return {.known = false, .object = {}};
    return {.known = true, .object = std::move(*object)};
  }

  void LookAtDirectory(const std::string& path, Ino ino) {
    Inode* const found = tree_.Find(ino);
    // It was dropped with its parent.
    if (found == nullptr || found->IsOrphan()) return;
    Inode& inode = *found;
    const Sight sight = Look(path);
    if (!sight.known) return;
    if (!sight.IsDirectory()) {
      gone_.push_back(ino);
      return;
    }
    Tree::SetLost(inode, false, stale_.inodes);
    const bool is_another = !inode.upper &&
                            !tree_.IsOrigin(inode, sight.object->st) &&
                            !MayShow(inode, *sight.object);
    if (is_another && ino != kRootIno) {
      // The kernel admitted the openers by the attributes of the old directory.
      DropBelow(inode);
      gone_.push_back(ino);
      // Nothing that the other directory has is shown here.
      Tree::SetLost(inode, true, stale_.inodes);
      return;
    }
    // An upper directory keeps its record, which its commit compares. The base
    // content that it shows may have changed again.
    if (!inode.upper && !tree_.Differs(inode, *sight.object)) return;
    const Timestamp before =
        std::max(inode.record.base->ctime, inode.names->seen);
    Inode::Names& names = inode.names.Make();
    names.seen = Timestamp::From(sight.object->st.st_ctim);
    if (!inode.upper) tree_.Revise(inode, *sight.object);
    ++names.version;
    inode.told_acl = kAclNotAsked;  // the kernel drops it, too
    stale_.inodes.push_back(ino);
    AddUnknownNames(path, inode, before);
  }

  /// Whether the users whom the kernel admitted to `inode` may read `object`.
  [[nodiscard]] bool MayShow(const Inode& inode,
                             const BaseObject& object) const {
    const Told told = Told::Of(*inode.record.base);
    return told.Covers(object.st) &&
           IsAclAsTold(inode.told_acl, told.mode,
                       base_.GetXattr(object.path, kAccessAcl));
  }

  /// Keeps only the children that the transaction changed.
  void DropBelow(const Inode& directory) {
    std::vector<std::pair<Ino, std::string>> known;
    directory.ForEachCached([&](const std::string& name, const Inode& child) {
      known.emplace_back(child.ino, name);
    });
    for (const auto& [ino, name] : known) {
      Inode* child = tree_.Find(ino);
      if (child == nullptr || child->upper) continue;
      if (child->IsDirectory()) DropBelow(*child);
      if (child->names->children != 0) continue;
      stale_.inodes.push_back(ino);
      DropNames(ino, {Name{.link = {directory.ino, name}, .sight = {}}});
    }
  }

  /// The kernel may have negative dentries for these names. Those that were
  /// made or renamed since `before` are new for a process that watches. In many
  /// names they are not searched.
  void AddUnknownNames(const std::string& path, const Inode& directory,
                       Timestamp before) {
    const auto entries = base_.List(path);
    if (!entries) return;
    const bool is_seen = directory.names->seen == before;
    const bool many = !is_seen && entries->size() > kMostPathEvents;
    if (many) stale_.watched.push_back({.parent = directory.ino, .name = {}});
    for (const BaseEntry& entry : *entries) {
      if (directory.Knows(entry.name)) continue;
      stale_.names.push_back({directory.ino, entry.name});
      const bool are_many = many || stale_.watched.size() > kMostPathEvents;
      if (is_seen || are_many) continue;
      const auto st = base_.Stat(JoinPath(path, entry.name));
      if (!st || Timestamp::From(st->st_ctim) <= before) continue;
      stale_.watched.push_back({.parent = directory.ino, .name = entry.name});
    }
  }

  void LookAtFile(Inode& inode) {
    std::vector<Name> names;
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = tree_.Find(link.parent);
      if (parent == nullptr || !parent->record.base) return;
      names.push_back(
          {link, Look(JoinPath(parent->record.base->path, link.name))});
      if (!names.back().sight.known) return;
    }
    const auto is_same = [&](const Name& name) {
      return name.sight.object && tree_.IsOrigin(inode, name.sight.object->st);
    };
    const auto stays = std::ranges::find_if(names, is_same);
    if (stays != names.end()) {
      const BaseObject object = *stays->sight.object;
      std::erase_if(names, is_same);
      Revise(inode, object);
    } else if (IsReplacedAsOne(inode, names)) {
      // A rewritten file stays the same inode for its open descriptors.
      files_.Drop(inode.ino);
      Revise(inode, *names.front().sight.object);
      return;
    }
    // A held file may be open and have a name that the kernel never looked up.
    const bool may_have_others = inode.lookups != 0 &&
                                 names.size() == inode.links.size() &&
                                 names.size() < inode.record.base->nlink;
    if (may_have_others) {
      nameless_.emplace_back(inode.ino, std::move(names));
    } else {
      DropNames(inode.ino, names);
    }
  }

  void DropNameless() {
    std::vector<Inode*> files;
    for (const auto& [ino, names] : nameless_) files.push_back(tree_.Find(ino));
    for (StaleCaches::Name& name : ShowElsewhere(tree_, base_, files)) {
      stale_.watched.push_back({.parent = name.parent, .name = name.name});
      stale_.names.push_back(std::move(name));
    }
    for (const auto& [ino, names] : nameless_) {
      DropNames(ino, names);
      Inode* inode = tree_.Find(ino);
      const bool stays = inode != nullptr && !inode->IsOrphan();
      if (!stays) continue;
      const Sight sight = Look(inode->record.base->path);
      if (sight.object) Revise(*inode, *sight.object);
    }
  }

  /// Drops the lost base names of an upper file while another name remains. The
  /// record stays, because its commit compares it. The recorded path of a
  /// changed file also stays if another program reused or deleted it: that is a
  /// conflict.
  void DropLostNames(const Inode& inode) {
    std::vector<Inode::Link> lost;
    bool has_others = false;
    for (const Inode::Link& link : inode.links) {
      const auto path = tree_.BasePathOf(link);
      const Sight sight =
          path ? Look(*path) : Sight{.known = false, .object = {}};
      const bool there =
          sight.object && tree_.IsOrigin(inode, sight.object->st);
      const bool contested = path == inode.record.base->path &&
                             (sight.object || inode.lost) &&
                             !inode.IsUnchanged();
      if (!sight.known || there) {
        has_others = true;
      } else if (!contested) {
        lost.push_back(link);
      }
    }
    if (!has_others) return;
    for (const Inode::Link& link : lost) DropName(inode.ino, link);
  }

  /// Whether all names lead to one other object of the same type that no inode
  /// of the tree represents.
  bool IsReplacedAsOne(const Inode& inode, const std::vector<Name>& names) {
    if (names.empty() || !names.front().sight.object) return false;
    const BaseObject& first = *names.front().sight.object;
    // Every user with the old file open must be allowed to read the new one.
    return TypeOfMode(first.st.st_mode) == inode.attr().type &&
           MayShow(inode, first) &&
           tree_.FindBaseFile(first.path, first.st) == nullptr &&
           std::ranges::all_of(names, [&](const Name& name) {
             return name.sight.object && IsIdentical(*name.sight.object, first);
           });
  }

  void Revise(Inode& inode, const BaseObject& object) {
    if (!tree_.Differs(inode, object)) return;
    tree_.Revise(inode, object);
    inode.told_acl = kAclNotAsked;  // the kernel drops it, too
    stale_.inodes.push_back(inode.ino);
  }

  void DropNames(Ino ino, const std::vector<Name>& names) {
    if (names.empty()) return;
    Inode& inode = *tree_.Find(ino);
    // Open descriptors keep reading the old file if it is still in the cache.
    const SharedFd open =
        files_.Find(ino, BaseIdentity::Of(*inode.record.base));
    for (const Name& name : names) DropName(ino, name.link);
    Inode* left = tree_.Find(ino);
    if (left != nullptr && left->IsOrphan()) {
      left->orphan.Make().pinned_base = open;
      stale_.inodes.push_back(ino);
    }
    if (left == nullptr || left->IsOrphan()) files_.Drop(ino);
  }

  /// A directory with changes of the transaction stays visible; its commit
  /// reports the conflict.
  void DropDirectory(Ino ino) {
    Inode* inode = tree_.Find(ino);
    if (inode == nullptr || ino == kRootIno) return;
    Tree::SetLost(*inode, true, stale_.inodes);
    if (inode->upper || inode->names->children != 0) return;
    const std::vector<Inode::Link> links = inode->links.ToVector();
    stale_.inodes.push_back(ino);
    for (const Inode::Link& link : links) DropName(ino, link);
  }

  /// A lost parent may have been kept only for this name.
  void DropName(Ino ino, const Inode::Link& link) {
    stale_.names.push_back({link.parent, link.name});
    stale_.watched.push_back(WasThere(*tree_.Find(ino), link));
    tree_.DropLink(*tree_.Find(ino), link);
    Inode* left = tree_.Find(ino);
    if (left != nullptr && left->IsOrphan()) left->orphan.Make().taken = true;
    const Inode* parent = tree_.Find(link.parent);
    if (parent != nullptr && parent->lost) DropDirectory(link.parent);
  }

  Tree& tree_;
  const BaseDirectory& base_;
  BaseFileCache& files_;
  std::vector<std::pair<std::string, Ino>> directories_;  ///< by base path
  std::vector<Ino> files_known_;
  std::vector<std::pair<Ino, std::vector<Name>>> nameless_;
  std::vector<Ino> linked_;  ///< upper files of several names
  std::vector<Ino> gone_;    ///< directories, parents first
  StaleCaches stale_;
};

}  // namespace

void BaseFollower::Update(Inode& inode, InodeRecord before,
                          std::optional<InodeRecord> after,
                          std::vector<Edit> names) {
  Change change{.op = Op::kFollow,
                .time = frozen_.Now(),
                .pid = static_cast<uint32_t>(::getpid()),
                .uid = ::geteuid(),
                .exe = "txfs",
                .path = tree_.PathOf(inode),
                .edits = std::move(names)};
  change.edits.push_back(
      InodeEdit{inode.ino, std::move(before), std::move(after)});
  frozen_.Follow(std::move(change));
  // If that fails, it is done before the next change.
  if (when_ == Journaling::kNow) std::ignore = frozen_.JournalFollowed();
}

/// The inode stays under its names, which are base names.
void BaseFollower::MakePristine(Inode& inode) {
  const Ino ino = inode.ino;
  const std::vector<Inode::Link> links = inode.links.ToVector();
  std::vector<Edit> names;
  for (const Inode::Link& link : links) {
    const Slot* slot = tree_.Find(link.parent)->UpperSlot(link.name);
    if (slot == nullptr) continue;
    names.push_back(DentryEdit{link.parent, link.name, slot->upper, {}});
  }
  Update(inode, inode.record, {}, std::move(names));
  Inode* left = tree_.Find(ino);
  if (left == nullptr) return;
  for (const Inode::Link& link : links) {
    Inode* parent = tree_.Find(link.parent);
    if (parent == nullptr || parent->Knows(link.name)) continue;
    tree_.Cache(*parent, link.name, *left);
  }
}

StaleCaches BaseFollower::FollowNames(const std::vector<Inode*>& changed) {
  LookedFor found = LookForChanged(tree_, frozen_.base, changed);
  for (LookedFor::Noted& was : found.noted) {
    Inode& inode = *tree_.Find(was.ino);
    InodeRecord before = inode.record;
    before.base->path = std::move(was.before);
    Update(inode, std::move(before), inode.record);
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
  for (StaleCaches::Name& name : found.shown) {
    stale.watched.push_back({.parent = name.parent, .name = name.name});
    stale.names.push_back(std::move(name));
  }
  std::ranges::copy(found.stale, std::back_inserter(stale.inodes));
  return stale;
}

/// Deletes the inode as if the transaction had deleted its last shown name.
StaleCaches BaseFollower::Delete(const LookedFor::Gone& gone) {
  Inode& inode = *tree_.Find(gone.ino);
  InodeRecord after = inode.record;
  after.attr.nlink = 0;
  after.base->path = gone.path;
  const std::vector<Inode::Link> links = inode.links.ToVector();
  Update(inode, inode.record, std::move(after));
  StaleCaches stale;
  stale.inodes.push_back(gone.ino);
  for (const Inode::Link& link : links) {
    stale.names.push_back({link.parent, link.name});
    stale.watched.push_back(WasThere(*tree_.Find(gone.ino), link));
    tree_.DropLink(*tree_.Find(gone.ino), link);
  }
  if (Inode* left = tree_.Find(gone.ino)) {
    // An open descriptor must not write content that no name shows.
    left->orphan.Make().taken = left->IsOrphan();
    // If a rollback restores the inode, it is searched again.
    left->lost = left->sought = false;
  }
  KeepDeleted(tree_, stale);
  return stale;
}

StaleCaches BaseFollower::Follow() { return Follow(tree_.upper()); }

StaleCaches BaseFollower::Follow(const std::vector<Inode*>& changed) {
  // A commit that stopped half-way, and not another program, changed the base.
  if (frozen_.IsHalted()) return {};
  frozen_.base.DropCache();
  StaleCaches stale = FollowNames(changed);
  stale.Append(FollowTouched(changed));
  return stale;
}

StaleCaches BaseFollower::FollowTouched(const std::vector<Inode*>& all) {
  StaleCaches stale;
  std::vector<Inode*> as_they_were, nothing;
  std::vector<std::pair<Inode*, InodeRecord>> changed;
  for (Inode* at : all) {
    Inode& inode = *at;
    if (IsNothing(tree_, inode)) {
      nothing.push_back(&inode);
    } else if (tree_.IsAsItWas(inode)) {
      if (!IsStillThere(tree_, frozen_.base, inode))
        as_they_were.push_back(&inode);
    } else if (auto after = inode.IsDirectory()
                                ? FollowAttributes(tree_, frozen_.base, inode)
                                : FollowContent(tree_, frozen_.base, inode)) {
      changed.emplace_back(&inode, std::move(*after));
    }
  }
  for (auto& [inode, after] : changed) {
    Update(*inode, inode->record, std::move(after));
    stale.inodes.push_back(inode->ino);
  }
  for (Inode* inode : nothing) Update(*inode, inode->record, {});
  std::vector<Ino> pristine;
  for (Inode* inode : as_they_were) {
    pristine.push_back(inode->ino);
    MakePristine(*inode);
  }
  stale.Append(Refresh(pristine));
  stale.Append(DropLostDirectories());
  return stale;
}

/// Repeats, because the parent of a dropped directory may be empty now.
StaleCaches BaseFollower::DropLostDirectories() {
  StaleCaches stale;
  for (;;) {
    std::vector<Inode*> empty;
    tree_.ForEachUpper([&](Inode& inode) {
      if (IsLostAndEmpty(tree_, inode)) empty.push_back(&inode);
    });
    std::vector<Ino> pristine;
    for (Inode* inode : empty) {
      pristine.push_back(inode->ino);
      MakePristine(*inode);
    }
    if (pristine.empty()) return stale;
    stale.Append(Refresh(pristine));
  }
}

StaleCaches BaseFollower::Refresh() {
  frozen_.ForgetDirectories();
  const bool follows = !frozen_.IsHalted();
  tree_.ForEachUpper([](Inode& inode) { inode.sought = false; });
  // First, while the names that only memory has still exist.
  StaleCaches stale = follows ? FollowNames(tree_.upper()) : StaleCaches();
  stale.Append(Refresher(tree_, frozen_.base, frozen_.origins.files()).Run());
  // Last: the refresh has dropped pristine inodes that do not match the base.
  if (follows) stale.Append(FollowTouched(tree_.upper()));
  frozen_.ExpectMoved();
  return stale;
}

StaleCaches BaseFollower::Refresh(std::span<const Ino> inos) {
  return Refresher(tree_, frozen_.base, frozen_.origins.files()).Run(inos);
}

StaleCaches BaseFollower::LookAgain(std::span<const Ino> inos) {
  // A commit that stopped half-way may have moved objects from their recorded
  // paths.
  if (frozen_.IsHalted()) return {};
  StaleCaches stale = Refresh(inos);
  std::vector<Inode*> directories;
  for (const Ino ino : inos) {
    Inode* inode = tree_.Find(ino);
    if (inode != nullptr && inode->upper && inode->IsDirectory()) {
      directories.push_back(inode);
    }
  }
  stale.Append(FollowTouched(directories));
  return stale;
}

void NoteLostDirectories(Tree& tree, const BaseDirectory& base) {
  tree.ForEachUpper([&](Inode& inode) {
    const bool of_base =
        inode.IsDirectory() && !inode.IsOrphan() && inode.record.base;
    if (!of_base) return;
    const auto st = base.Stat(inode.record.base->path);
    inode.lost = st ? !S_ISDIR(st->st_mode) : IsGone(st.error());
  });
}

}  // namespace txfs
