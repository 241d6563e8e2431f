#pragma once

#include <functional>
#include <span>

#include "fs/overlay/frozen.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/image.h"

namespace txfs {

/// Passes the inodes that the kernel holds from the tree of a transaction, or
/// of a part of it, that ends to the tree that follows.
class Handover {
 public:
  explicit Handover(Frozen& frozen) : frozen_(frozen), tree_(frozen.tree) {}

  /// Opens the base files that orphans still read. Call before a commit moves
  /// base objects.
  Status PinOrphans();

  struct ChangedInodes {
    StaleCaches known;    ///< the kernel has their attributes
    StaleCaches unknown;  ///< it will ask for them
  };
  /// The upper inodes that the kernel holds. A discard makes them stale. The
  /// kernel may receive the invalidations during the discard; its requests are
  /// answered afterwards.
  [[nodiscard]] ChangedInodes Changed() const;

  /// Ends the transaction in memory, or shows the tree as if it had ended. A
  /// held inode becomes pristine if the base has it (`committed`: at its
  /// overlay path, else at its base path), and otherwise an orphan. No mutation
  /// may come before SwapJournal or Restore. Returns the stale caches, without
  /// Changed unless `committed`. Calls `visit`, if given, on every inode first;
  /// inodes that stay in place may be pristine by then.
  StaleCaches Reset(bool committed,
                    const std::function<void(const Inode&)>& visit = {});
  /// Reverts a Reset: loads the tree from the journal again. Returns the stale
  /// caches.
  Result<StaleCaches> Restore();
  /// Ends a part of the transaction: removes `change`, planned by
  /// PlanSettlement and settled by the journal, from the tree. A commit has
  /// brought it to the base before. `tables`: the tables of the journal before
  /// the settlement. Returns the stale caches.
  StaleCaches Settle(const Change& change, Image tables);

 private:
  Frozen& frozen_;
  Tree& tree_;
};

/// Adds the names of `rebased` to `stale`: the kernel may have cached that they
/// lead to the former inodes.
void AddRebased(const Tree& tree, Tree::Rebased rebased, StaleCaches& stale);
/// Clears `was` of those names in `stale.watched` whose inode has a name. Call
/// it when the tree has changed.
void KeepDeleted(const Tree& tree, StaleCaches& stale);
/// Adds the paths of those directories of `inos` that the overlay shows to
/// `stale.moved`.
void AddMoved(const Tree& tree, std::span<const Ino> inos, StaleCaches& stale);

}  // namespace txfs
