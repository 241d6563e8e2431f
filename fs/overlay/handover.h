#pragma once

#include <functional>
#include <span>

#include "fs/overlay/frozen.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/image.h"

namespace txfs {

/// Passes the inodes that the kernel holds from the tree of a transaction that
/// ends, or of a part of it, to the tree that follows.
class Handover {
 public:
  explicit Handover(Frozen& frozen) : frozen_(frozen), tree_(frozen.tree) {}

  /// Before a commit moves base objects: keeps open what orphans still read.
  Status PinOrphans();

  struct ChangedInodes {
    StaleCaches known;    ///< the kernel has their attributes
    StaleCaches unknown;  ///< it will ask for them
  };
  /// Inodes that the transaction changed and the kernel holds. A discard makes
  /// them stale, and the kernel may be told meanwhile: it gets its answers
  /// afterwards.
  [[nodiscard]] ChangedInodes Changed() const;

  /// The transaction is over, or shown as if it were. Held inodes become
  /// pristine where the base has them (`committed`: at their overlay path, else
  /// at their base path), and orphans where it has not. No mutation may come
  /// before SwapJournal or Restore. Returns what is stale, without Changed
  /// unless `committed`. Shows `visit`, if there is one, every inode first;
  /// inodes at the same place in the base may be pristine already then.
  StaleCaches Reset(bool committed,
                    const std::function<void(const Inode&)>& visit = {});
  /// After a Reset, the transaction is not over after all: loads the tree from
  /// its journal. Returns what is stale.
  Result<StaleCaches> Restore();
  /// A part of the transaction is over: takes `change`, planned by
  /// PlanSettlement and settled by the journal, out of the tree; a commit has
  /// brought it to the base. `tables`: the tables of the journal before.
  /// Returns what is stale.
  StaleCaches Settle(const Change& change, Image tables);

 private:
  Frozen& frozen_;
  Tree& tree_;
};

/// The kernel may remember that the names of `rebased` lead to what they led
/// to: adds them to `stale`.
void AddRebased(const Tree& tree, Tree::Rebased rebased, StaleCaches& stale);
/// Adds directories of `inos` that the overlay shows to `stale.moved`.
void AddMoved(const Tree& tree, std::span<const Ino> inos, StaleCaches& stale);

}  // namespace txfs
