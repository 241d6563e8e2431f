#include "fs/overlay/handover.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "fs/posix/path_event.h"
#include "fs/tree/settlement.h"

namespace txfs {
namespace {

bool Reads(const Inode& inode) {
  // A commit does not move the base file of a pristine orphan.
  return inode.IsOrphan() && inode.record.base && inode.attr().base_limit > 0 &&
         inode.lookups > 0 && !inode.orphan->pinned_base;
}

/// Directories that a commit leaves where they are.
class Unmoved {
 public:
  explicit Unmoved(const Tree& tree) : tree_(tree) {}

  /// Whether all known names of `inode` are in such directories.
  bool Hold(const Inode& inode) {
    return std::ranges::all_of(inode.links, [&](const Inode::Link& link) {
      const auto [known, is_new] = directories_.try_emplace(link.parent, false);
      if (is_new) known->second = IsUnmoved(tree_.Find(link.parent));
      return known->second;
    });
  }

 private:
  [[nodiscard]] bool IsUnmoved(const Inode* directory) {
    return directory != nullptr && directory->record.base &&
           tree_.VisiblePath(*directory, {}, &paths_) ==
               directory->record.base->path;
  }

  const Tree& tree_;
  PathMemo paths_;
  std::unordered_map<Ino, bool> directories_;
};

/// All base paths of a survivor after the transaction.
std::vector<std::string> PathsAfter(const Tree& tree, const Inode& inode,
                                    bool committed) {
  return committed ? tree.VisiblePaths(inode) : tree.KnownBasePaths(inode);
}

/// Directories list the inode number, which may change. They are stale even if
/// the kernel has forgotten the inode.
void NoteParents(const Inode& inode, std::unordered_set<Ino>& parents) {
  for (const Inode::Link& link : inode.links) parents.insert(link.parent);
}

/// Notes the names of `directory` that the transaction changed. Of more names
/// than have an event one of each directory is enough.
void WatchNames(const Tree& tree, const Inode& directory, StaleCaches& stale) {
  for (const auto& [name, slot] : directory.names->slots) {
    if (!slot.IsUpper()) continue;
    const Inode* inode = tree.Find(slot.upper.ino);
    stale.watched.push_back(
        {.parent = directory.ino,
         .name = name,
         .was_there = slot.upper.kind == DentryKind::kInode,
         .was_directory = inode != nullptr && inode->IsDirectory(),
         .was = slot.upper.ino});
    if (stale.watched.size() > kMostPathEvents) return;
  }
}

/// The held inodes for Tree::Rebase, and the caches that the kernel must drop.
class Survivors {
 public:
  Survivors(Tree& tree, const Settlement& settlement, const Change& change)
      : tree_(tree),
        settlement_(settlement),
        discards_(change.op == Op::kDiscard) {
    tree_.ForEach([&](Inode& inode) {
      if (inode.lookups != 0 || inode.ino == kRootIno) Add(inode);
    });
    for (const Edit& edit : change.edits) {
      if (const auto* name = std::get_if<DentryEdit>(&edit)) {
        AddStaleName(*name);
      } else if (const auto* inode = std::get_if<InodeEdit>(&edit)) {
        // Needed for a directory in which other names stay changed.
        stale.inodes.push_back(inode->ino);
        AddParents(inode->ino);
      }
    }
    std::ranges::copy(parents_, std::back_inserter(stale.inodes));
  }

  std::vector<Tree::Survivor> list;
  StaleCaches stale;

 private:
  void Add(const Inode& inode) {
    const bool settled = settlement_.IsSettled(inode.ino);
    Tree::Survivor survivor{.ino = inode.ino};
    const bool revived = discards_ && settled && !inode.orphan->pinned_base;
    survivor.stays_orphan =
        inode.IsOrphan() &&
        (!revived || inode.orphan->retired || !inode.record.base);
    if (!survivor.stays_orphan) {
      survivor.paths = settlement_.PathsAfter(inode);
      survivor.unchanged = !settled && !inode.IsDirectory();
    }
    if (inode.ino == kRootIno) survivor.paths = {""};
    list.push_back(std::move(survivor));
  }

  /// Directories list the inode number, which may change. They are stale even
  /// if the kernel has forgotten the inode.
  void AddParents(Ino ino) {
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !settlement_.IsSettled(ino)) return;
    for (const Inode::Link& link : inode->links) parents_.insert(link.parent);
  }

  void AddStaleName(const DentryEdit& edit) {
    const Inode* parent = tree_.Find(edit.parent);
    if (parent == nullptr || parent->lookups == 0) return;
    parents_.insert(edit.parent);
    if (discards_) {
      const Inode* inode = tree_.Find(edit.before.ino);
      stale.watched.push_back(
          {.parent = edit.parent,
           .name = edit.name,
           .was_there = edit.before.kind == DentryKind::kInode,
           .was_directory = inode != nullptr && inode->IsDirectory(),
           .was = edit.before.ino});
    }
    // Other names in the kernel's cache lead to held inodes: Rebase reports
    // those that disappeared.
    if (discards_ && edit.before.kind == DentryKind::kWhiteout) {
      stale.names.push_back({edit.parent, edit.name});
    }
  }

  Tree& tree_;
  const Settlement& settlement_;
  const bool discards_;
  std::set<Ino> parents_;  ///< of stale inodes
};

}  // namespace

Status Handover::PinOrphans() {
  Status status;
  tree_.ForEachUpper([&](Inode& inode) {
    if (!status || !Reads(inode)) return;
    auto fd = frozen_.OpenOrigin(inode);
    if (fd) {
      inode.orphan.Make().pinned_base = *fd;
    } else if (fd.error().code != ESTALE) {  // a file that is gone stays gone
      status = std::unexpected(std::move(fd).error());
    }
  });
  return status;
}

Handover::ChangedInodes Handover::Changed() const {
  ChangedInodes changed;
  tree_.ForEachUpper([&](const Inode& inode) {
    if (inode.lookups == 0) return;
    (inode.attr_told ? changed.known : changed.unknown)
        .inodes.push_back(inode.ino);
  });
  return changed;
}

StaleCaches Handover::Reset(bool committed,
                            const std::function<void(const Inode&)>& visit) {
  StaleCaches stale;
  std::vector<Tree::Survivor> survivors;
  std::unordered_set<Ino> parents;  // of stale inodes
  Unmoved unmoved(tree_);
  tree_.ForEach([&](Inode& inode) {
    if (visit) visit(inode);
    const bool held = inode.lookups != 0 || inode.ino == kRootIno;
    if (committed && inode.upper) NoteParents(inode, parents);
    if (!held) return;
    // Most inodes are at their base paths, and there may be many.
    const bool was_upper = inode.upper;
    const bool stays = !committed || (!was_upper && unmoved.Hold(inode));
    if (stays && !inode.orphan->retired && !inode.orphan->pinned_base &&
        tree_.StayInPlace(inode)) {
      if (was_upper && committed) stale.inodes.push_back(inode.ino);
      return;
    }
    const bool pristine =
        !inode.upper && inode.record.base && !inode.IsOrphan();
    // A commit also changes the times of directories that the transaction did
    // not.
    Tree::Survivor survivor{
        .ino = inode.ino,
        .paths = PathsAfter(tree_, inode, committed),
        .unchanged = pristine && !(committed && inode.IsDirectory()),
        .as_before = !committed && inode.record.base.has_value()};
    if (inode.ino == kRootIno) survivor.paths = {""};
    if (inode.lost) {
      survivor.unchanged = survivor.as_before = false;
      stale.inodes.push_back(inode.ino);
    }
    // An orphan of an earlier transaction, or one that another transaction
    // deleted, stays an orphan even if its old path exists again.
    const bool gone = !inode.upper && inode.IsOrphan();
    if (gone || inode.orphan->retired || inode.orphan->pinned_base)
      survivor.paths.clear();
    if (!pristine) {
      // A commit does not change the content that the mount shows.
      const bool same_content = committed && !inode.IsOrphan() &&
                                inode.attr().type == FileType::kRegular;
      if (committed || !was_upper) {
        (same_content ? stale.attributes : stale.inodes).push_back(inode.ino);
      }
      NoteParents(inode, parents);
    }
    if (!committed && inode.names->upper != 0) {
      WatchNames(tree_, inode, stale);
      for (const auto& [name, slot] : inode.names->slots) {
        // The kernel may have a negative dentry. Rebase reports the names that
        // disappeared.
        if (slot.upper.kind != DentryKind::kWhiteout) continue;
        stale.names.push_back({inode.ino, name});
      }
    }
    survivors.push_back(std::move(survivor));
  });
  stale.inodes.insert(stale.inodes.end(), parents.begin(), parents.end());
  frozen_.ForgetMeters();
  // A discard does not change the base.
  if (committed) frozen_.DropCaches();
  AddRebased(tree_,
             tree_.Rebase(std::move(survivors), frozen_.BaseLook(),
                          frozen_.SharedJournal()),
             stale);
  KeepDeleted(tree_, stale);
  return stale;
}

Result<StaleCaches> Handover::Restore() {
  Image tables;
  TRY(frozen_.journal.Load(tables));
  frozen_.ForgetFollowed();
  StaleCaches stale;
  for (const auto& [place, value] : tables.dentries) {
    stale.names.push_back({place.first, place.second});
  }
  std::vector<Tree::Survivor> survivors;
  tree_.ForEach([&](Inode& inode) {
    if (inode.lookups == 0 && inode.ino != kRootIno) return;
    const bool returns = tables.inodes.contains(inode.ino);
    if (returns) {
      if (Inode::Orphan* orphan = inode.orphan.get()) orphan->retired.reset();
      stale.inodes.push_back(inode.ino);
    }
    Tree::Survivor survivor{.ino = inode.ino};
    survivor.unchanged = !inode.IsDirectory();
    survivor.stays_orphan = inode.IsOrphan() && !returns;
    if (!survivor.stays_orphan) survivor.paths = tree_.KnownBasePaths(inode);
    if (inode.ino == kRootIno) survivor.paths = {""};
    survivors.push_back(std::move(survivor));
  });
  frozen_.ForgetMeters();
  frozen_.DropCaches();
  AddRebased(
      tree_,
      tree_.Rebase(std::move(survivors), frozen_.BaseLook(), nullptr, tables),
      stale);
  std::ignore = tree_.TakeDropped();
  return stale;
}

StaleCaches Handover::Settle(const Change& change, Image tables) {
  Apply(change, tables);
  frozen_.ForgetMoves();

  const Settlement settlement(tree_, change);
  std::map<Ino, std::vector<Extent>> dropped;
  tree_.ForEach([&](Inode& inode) {
    if (!settlement.IsSettled(inode.ino) || inode.orphan->retired) return;
    for (const auto& [offset, extent] : inode.extents) {
      dropped[inode.ino].push_back(extent);
    }
  });
  Survivors survivors(tree_, settlement, change);
  frozen_.ForgetMeters();
  frozen_.DropCaches();
  AddRebased(tree_,
             tree_.Rebase(std::move(survivors.list), frozen_.BaseLook(),
                          nullptr, tables),
             survivors.stale);
  std::ignore = tree_.TakeDropped();
  KeepDeleted(tree_, survivors.stale);
  Journal& journal = frozen_.journal;
  for (const auto& [ino, extents] : dropped) {
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !inode->IsOrphan()) {
      frozen_.Release(extents, journal.last_lsn());
    }
  }
  return std::move(survivors.stale);
}

void AddRebased(const Tree& tree, Tree::Rebased rebased, StaleCaches& stale) {
  for (Inode::Link& link : rebased.went) {
    stale.names.push_back({link.parent, std::move(link.name)});
  }
  AddMoved(tree, rebased.moved, stale);
}

void KeepDeleted(const Tree& tree, StaleCaches& stale) {
  for (StaleCaches::Watched& name : stale.watched) {
    const Inode* inode = tree.Find(name.was);
    const bool is_deleted = inode != nullptr && inode->IsOrphan() &&
                            !inode->IsDirectory() && inode->lookups != 0;
    if (!is_deleted) name.was = kNoIno;
  }
}

void AddMoved(const Tree& tree, std::span<const Ino> inos, StaleCaches& stale) {
  for (const Ino ino : inos) {
    const Inode* inode = tree.Find(ino);
    if (inode == nullptr || !inode->IsDirectory()) continue;
    if (auto path = tree.VisiblePath(*inode)) {
      stale.moved.push_back(std::move(*path));
    }
  }
}

}  // namespace txfs
