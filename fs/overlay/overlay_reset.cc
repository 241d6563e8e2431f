#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "fs/overlay/overlay.h"

namespace txfs {
namespace {

bool Reads(const Inode& inode) {
  // A pristine orphan is none of the commit's business.
  return inode.IsOrphan() && inode.record.base && inode.attr().base_limit > 0 &&
         inode.lookups > 0 && !inode.pinned_base;
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

/// All base paths at which a survivor is to be found after the transaction.
std::vector<std::string> PathsAfter(const Tree& tree, const Inode& inode,
                                    bool committed) {
  return committed ? tree.VisiblePaths(inode) : tree.KnownBasePaths(inode);
}

/// The inode number may become another, which directories list, also when the
/// kernel has forgotten the inode itself.
void NoteParents(const Inode& inode, std::unordered_set<Ino>& parents) {
  for (const Inode::Link& link : inode.links) parents.insert(link.parent);
}

}  // namespace

Result<std::map<std::string, std::string>>
OverlayFilesystem::Frozen::BaseXattrs(const std::string& path,
                                      std::optional<uint64_t> ino) const {
  return filesystem.BaseXattrs(path, ino);
}

void OverlayFilesystem::Frozen::SetHalted(bool halted) {
  // Held by WhileFrozen, here and below.
  [&]() NO_THREAD_SAFETY_ANALYSIS { filesystem.halted_ = halted; }();
}

Status OverlayFilesystem::Frozen::PinOrphans() {
  Status status;
  tree.ForEachUpper([&](Inode& inode) {
    if (!status || !Reads(inode)) return;
    auto fd = [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
      return filesystem.OpenBase(filesystem.PlanRead(inode, 0, 0));
    }();
    if (fd) {
      inode.pinned_base = *fd;
    } else if (fd.error().code != ESTALE) {  // what is gone, nobody can keep
      status = std::unexpected(std::move(fd).error());
    }
  });
  return status;
}

Tree::Look OverlayFilesystem::Frozen::BaseLook() const { return LookAt(base); }

void OverlayFilesystem::Frozen::ForgetMeters() const {
  [&]() NO_THREAD_SAFETY_ANALYSIS { filesystem.meters_.ForgetTree(); }();
}

void OverlayFilesystem::Frozen::DropCaches() const {
  ForgetDirectories();
  filesystem.files_.Clear();
}

OverlayFilesystem::Frozen::ChangedInodes OverlayFilesystem::Frozen::Changed()
    const {
  ChangedInodes changed;
  tree.ForEachUpper([&](const Inode& inode) {
    if (inode.lookups == 0) return;
    (inode.attr_told ? changed.known : changed.unknown)
        .inodes.push_back(inode.ino);
  });
  return changed;
}

StaleCaches OverlayFilesystem::Frozen::Reset(
    bool committed, const std::function<void(const Inode&)>& visit) {
  StaleCaches stale;
  std::vector<Tree::Survivor> survivors;
  std::unordered_set<Ino> parents;  // of what is stale
  Unmoved unmoved(tree);
  tree.ForEach([&](Inode& inode) {
    if (visit) visit(inode);
    const bool held = inode.lookups != 0 || inode.ino == kRootIno;
    if (committed && inode.upper) NoteParents(inode, parents);
    if (!held) return;
    // Most are where the base has them, and there may be many.
    const bool was_upper = inode.upper;
    const bool stays = !committed || (!was_upper && unmoved.Hold(inode));
    if (stays && !inode.retired && !inode.pinned_base &&
        tree.StayInPlace(inode)) {
      if (was_upper && committed) stale.inodes.push_back(inode.ino);
      return;
    }
    const bool pristine =
        !inode.upper && inode.record.base && !inode.IsOrphan();
    // A commit changes the times of directories that the transaction did not.
    Tree::Survivor survivor{
        .ino = inode.ino,
        .paths = PathsAfter(tree, inode, committed),
        .unchanged = pristine && !(committed && inode.IsDirectory()),
        .as_before = !committed && inode.record.base.has_value()};
    if (inode.ino == kRootIno) survivor.paths = {""};
    if (inode.lost) survivor.unchanged = survivor.as_before = false;
    // An orphan of an earlier transaction, or that another one removed, stays
    // one, whatever has its old path by now.
    const bool gone = !inode.upper && inode.IsOrphan();
    if (gone || inode.retired || inode.pinned_base) survivor.paths.clear();
    if (!pristine) {
      // What was committed is what the mount shows.
      const bool same_content = committed && !inode.IsOrphan() &&
                                inode.attr().type == FileType::kRegular;
      if (committed || !was_upper) {
        (same_content ? stale.attributes : stale.inodes).push_back(inode.ino);
      }
      NoteParents(inode, parents);
    }
    if (!committed && inode.upper_names != 0) {
      for (const auto& [name, slot] : inode.slots) {
        // It may remember that there is none; which names went, the tree says.
        if (slot.upper.kind != DentryKind::kWhiteout) continue;
        stale.names.push_back({inode.ino, name});
      }
    }
    survivors.push_back(std::move(survivor));
  });
  stale.inodes.insert(stale.inodes.end(), parents.begin(), parents.end());
  ForgetMeters();
  // A discard does nothing to the base.
  if (committed) DropCaches();
  AddRebased(tree.Rebase(std::move(survivors), BaseLook(), SharedJournal()),
             stale);
  return stale;
}

void OverlayFilesystem::Frozen::AddRebased(Tree::Rebased rebased,
                                           StaleCaches& stale) const {
  for (Inode::Link& link : rebased.went) {
    stale.names.push_back({link.parent, std::move(link.name)});
  }
  AddMoved(rebased.moved, stale);
}

void OverlayFilesystem::Frozen::AddMoved(std::span<const Ino> inos,
                                         StaleCaches& stale) const {
  for (const Ino ino : inos) {
    const Inode* inode = tree.Find(ino);
    if (inode == nullptr || !inode->IsDirectory()) continue;
    if (auto path = tree.VisiblePath(*inode)) {
      stale.moved.push_back(std::move(*path));
    }
  }
}

void OverlayFilesystem::Frozen::Adopt(std::shared_ptr<Journal>& next) {
  [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
    std::swap(filesystem.journal_, next);
    filesystem.halted_ = false;
  }();
}

Result<StaleCaches> OverlayFilesystem::Frozen::Restore() {
  Image tables;
  TRY(journal.Load(tables));
  StaleCaches stale;
  for (const auto& [place, value] : tables.dentries) {
    stale.names.push_back({place.first, place.second});
  }
  std::vector<Tree::Survivor> survivors;
  tree.ForEach([&](Inode& inode) {
    if (inode.lookups == 0 && inode.ino != kRootIno) return;
    const bool returns = tables.inodes.contains(inode.ino);
    if (returns) {
      inode.retired.reset();
      stale.inodes.push_back(inode.ino);
    }
    Tree::Survivor survivor{.ino = inode.ino};
    survivor.unchanged = !inode.IsDirectory();
    survivor.stays_orphan = inode.IsOrphan() && !returns;
    if (!survivor.stays_orphan) survivor.paths = tree.KnownBasePaths(inode);
    if (inode.ino == kRootIno) survivor.paths = {""};
    survivors.push_back(std::move(survivor));
  });
  ForgetMeters();
  DropCaches();
  AddRebased(tree.Rebase(std::move(survivors), BaseLook(), nullptr, tables),
             stale);
  return stale;
}

}  // namespace txfs
