#include <algorithm>
#include <iterator>
#include <set>

#include "fs/overlay/overlay.h"
#include "fs/tree/settlement.h"

namespace txfs {
namespace {

/// Held inodes as Tree::Rebase wants them, and what the kernel has to forget.
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
        // Of a directory in which other names stay changed, too.
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
    const bool revived = discards_ && settled && !inode.pinned_base;
    survivor.stays_orphan =
        inode.IsOrphan() && (!revived || inode.retired || !inode.record.base);
    if (!survivor.stays_orphan) {
      survivor.paths = settlement_.PathsAfter(inode);
      survivor.unchanged = !settled && !inode.IsDirectory();
    }
    if (inode.ino == kRootIno) survivor.paths = {""};
    list.push_back(std::move(survivor));
  }

  /// The inode number may become another, which directories list, also when
  /// the kernel has forgotten the inode itself.
  void AddParents(Ino ino) {
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !settlement_.IsSettled(ino)) return;
    for (const Inode::Link& link : inode->links) parents_.insert(link.parent);
  }

  void AddStaleName(const DentryEdit& edit) {
    const Inode* parent = tree_.Find(edit.parent);
    if (parent == nullptr || parent->lookups == 0) return;
    parents_.insert(edit.parent);
    // Others that the kernel knows are names of an inode that it holds: Rebase
    // says which of those went.
    if (discards_ && edit.before.kind == DentryKind::kWhiteout) {
      stale.names.push_back({edit.parent, edit.name});
    }
  }

  Tree& tree_;
  const Settlement& settlement_;
  const bool discards_;
  std::set<Ino> parents_;  ///< of what is stale
};

}  // namespace

void OverlayFilesystem::Frozen::Sign(const Caller& caller,
                                     Change& change) const {
  change.time = filesystem.options_.clock->Now();
  change.pid = caller.pid;
  change.uid = caller.uid;
  change.exe = filesystem.options_.exe_of(caller.pid);
}

StaleCaches OverlayFilesystem::Frozen::Settle(const Change& change,
                                              Image tables) {
  Apply(change, tables);
  filesystem.links_.ForgetMoves();

  const Settlement settlement(tree, change);
  std::map<Ino, std::vector<Extent>> dropped;
  tree.ForEach([&](Inode& inode) {
    if (!settlement.IsSettled(inode.ino) || inode.retired) return;
    for (const auto& [offset, extent] : inode.extents) {
      dropped[inode.ino].push_back(extent);
    }
  });
  Survivors survivors(tree, settlement, change);
  ForgetMeters();
  DropCaches();
  AddRebased(
      tree.Rebase(std::move(survivors.list), BaseLook(), nullptr, tables),
      survivors.stale);
  [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
    for (const auto& [ino, extents] : dropped) {
      const Inode* inode = tree.Find(ino);
      if (inode == nullptr || !inode->IsOrphan()) {
        filesystem.ReleaseAll(journal, extents, journal.last_lsn());
      }
    }
  }();
  return std::move(survivors.stale);
}

}  // namespace txfs
