#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/origin/origin_reader.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/journal.h"
#include "journal/savepoint.h"
#include "policy/policy.h"

namespace txfs {

class OverlayFilesystem;

/// All of an OverlayFilesystem while no operation can look at it or change it:
/// OverlayFilesystem::WhileFrozen makes one, with the commit gate and the tree
/// lock held exclusively. Functions that the kernel may wait for would deadlock
/// here: use these instead of Filesystem's.
class Frozen {
 public:
  Frozen(Tree& the_tree, const BaseDirectory& the_base, Journal& the_journal,
         OriginReader& the_origins, OverlayFilesystem& overlay)
      : tree(the_tree),
        base(the_base),
        journal(the_journal),
        origins(the_origins),
        overlay_(overlay) {}

  /// The same of `copy`, a tree of the transaction that no operation uses.
  [[nodiscard]] Frozen On(Tree& copy) const {
    return {copy, base, journal, origins, overlay_};
  }

  Tree& tree;
  const BaseDirectory& base;
  Journal& journal;
  OriginReader& origins;

  /// Reads content of an inode, as Filesystem::Read.
  Result<size_t> Read(const Inode& inode, uint64_t offset, MutableByteSpan out);
  /// Where in `range` the file may have other bytes than zeros, in order.
  std::vector<Range> DataIn(const Inode& inode, Range range);
  /// The user.* attributes that `inode`, of base origin and with none of its
  /// own, has of the base.
  Result<std::map<std::string, std::string>> OldXattrs(
      const Inode& inode) const;
  /// The base file of `inode`, opened.
  Result<SharedFd> OpenOrigin(const Inode& inode);

  /// Makes `content` all there is in a regular file, whose record becomes
  /// `after` but for size and times. Journaled, as a write by us, with the
  /// edits `along`.
  Status Rewrite(Inode& inode, InodeRecord after, ByteSpan content,
                 std::vector<Edit> along = {});
  /// What Append does with a change.
  enum class Appending {
    kJournal,  ///< appends it to the journal and applies it
    kRefuse,   ///< fails (EROFS)
    kApply,    ///< only applies it: the tree is a copy
  };
  /// Applies a change without a verdict.
  Result<Lsn> Append(const Change& change);
  void SetAppending(Appending appending) { appending_ = appending; }
  /// Whether Append refused a change.
  [[nodiscard]] bool refused() const { return refused_; }
  /// Frees extents that the change `lsn` let go of.
  void Release(const std::vector<Extent>& extents, Lsn lsn);
  /// Records in `change` the process that makes it, and the time.
  void Sign(const Caller& caller, Change& change) const;
  /// By the clock that gives changes their times.
  [[nodiscard]] Timestamp Now() const;

  /// While the base or the store may be half-way between two states, mutations
  /// are refused.
  void SetHalted(bool halted);
  [[nodiscard]] bool IsHalted() const;

  /// The journal, for use after the freeze.
  [[nodiscard]] std::shared_ptr<Journal> SharedJournal() const;
  /// Continues with the journal `next`, of the transaction that begins, and
  /// puts the old one into it. That one must live as long as an orphan needs
  /// it.
  void SwapJournal(std::shared_ptr<Journal>& next);
  /// The policy in force; or null.
  [[nodiscard]] std::shared_ptr<const policy::Policy> SharedPolicy() const;

  /// Rolls back to `savepoint`, in the journal, too. Returns what is stale;
  /// `*undone` is the number of changes. Drain the journal after the freeze: it
  /// frees what is not needed.
  Result<StaleCaches> Rollback(const Caller& caller, const Savepoint& savepoint,
                               uint64_t* undone);

  // Caches that depend on the base or on the tree.
  [[nodiscard]] Tree::Look BaseLook() const;
  /// Other directories may have the names by now: drops descriptors and lists.
  void ForgetDirectories() const;
  /// The same, and drops descriptors of base files.
  void DropCaches() const;
  /// The tree changed by something else than an operation.
  void ForgetMeters() const;
  /// Directories of the tree moved.
  void ForgetMoves() const;
  /// The base changed: files that are not at their recorded paths have to be
  /// looked for again.
  void ExpectMoved() const;

 private:
  OverlayFilesystem& overlay_;
  Appending appending_ = Appending::kJournal;
  bool refused_ = false;
};

}  // namespace txfs
