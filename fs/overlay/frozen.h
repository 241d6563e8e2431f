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
class TouchedInodes;

/// Access to an OverlayFilesystem while no operation runs.
/// OverlayFilesystem::WhileFrozen creates one, with the commit gate and the
/// tree lock held exclusively. Operations of Filesystem would deadlock here:
/// use these functions instead.
class Frozen {
 public:
  Frozen(Tree& the_tree, const BaseDirectory& the_base, Journal& the_journal,
         OriginReader& the_origins, OverlayFilesystem& overlay)
      : tree(the_tree),
        base(the_base),
        journal(the_journal),
        origins(the_origins),
        overlay_(overlay) {}
  ~Frozen();
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;

  Tree& tree;
  const BaseDirectory& base;
  Journal& journal;
  OriginReader& origins;

  /// Reads content of an inode, as Filesystem::Read.
  Result<size_t> Read(const Inode& inode, uint64_t offset, MutableByteSpan out);
  /// The parts of `range` that may have nonzero bytes, in order.
  std::vector<Range> DataIn(const Inode& inode, Range range);
  /// The user.* attributes in the base of `inode`, which has base origin and no
  /// attributes of its own.
  Result<std::map<std::string, std::string>> OldXattrs(
      const Inode& inode) const;
  /// Opens the base file of `inode`.
  Result<SharedFd> OpenOrigin(const Inode& inode);

  /// Replaces the content of a regular file by `content` and its record by
  /// `after`, except for size and times. Journaled as a write by txfs, together
  /// with the edits `along`.
  Status Rewrite(Inode& inode, InodeRecord after, ByteSpan content,
                 std::vector<Edit> along = {});
  /// Applies a change of Op::kFollow. JournalFollowed and each change append it
  /// to the journal. A restart before that loses it: the base is then compared
  /// again, without the names that only memory had.
  void Follow(Change change);
  /// Appends what Follow applied. Call before a use of the journal that expects
  /// the state of the tree there.
  Status JournalFollowed();
  /// Call when the tree has lost what Follow applied.
  void ForgetFollowed();
  /// Frees extents that the change `lsn` released.
  void Release(const std::vector<Extent>& extents, Lsn lsn);
  /// Records in `change` the calling process and the time.
  void Sign(const Caller& caller, Change& change) const;
  /// The time, from the clock that stamps changes.
  [[nodiscard]] Timestamp Now() const;

  /// While halted, mutations fail with EROFS: the base or the store may be
  /// half-way between two states.
  void SetHalted(bool halted);
  [[nodiscard]] bool IsHalted() const;

  /// The journal, for use after the freeze.
  [[nodiscard]] std::shared_ptr<Journal> SharedJournal() const;
  /// Continues with the journal `next` of the new transaction and returns the
  /// old one in `next`. The old journal must live as long as an orphan needs
  /// it.
  void SwapJournal(std::shared_ptr<Journal>& next);
  /// The policy in force, or null.
  [[nodiscard]] std::shared_ptr<const policy::Policy> SharedPolicy() const;

  /// Rolls the tree and the journal back to `savepoint`. Returns the stale
  /// caches; sets `*undone` to the number of changes. Drain the journal after
  /// the freeze to free the content that is no longer needed.
  Result<StaleCaches> Rollback(const Caller& caller, const Savepoint& savepoint,
                               uint64_t* undone);
  /// Marks a savepoint here, as OverlayFilesystem::MarkSavepoint.
  Result<Savepoint> Mark(const Caller& caller, const std::string& name,
                         const std::string& call);
  /// Appends `change`, an Op::kRevert, and does the same to the tree: `rewind`
  /// has the values of its edits. A savepoint must precede it. Returns the
  /// stale caches. Drain the journal before and after it.
  Result<StaleCaches> Revert(const Change& change, const Rewind& rewind);

  /// Whether nothing but what `touched` has changed since its Watch.
  [[nodiscard]] bool IsComplete(const TouchedInodes& touched) const;
  /// Tells each TouchedInodes that this freeze left the tree as it was.
  void LeaveTree() const;

  // Caches that depend on the base or on the tree.
  [[nodiscard]] Tree::Look BaseLook() const;
  /// Drops the descriptors and lists of base directories, because names may
  /// lead to other directories now.
  void ForgetDirectories() const;
  /// Drops the descriptors of base directories and base files.
  void DropCaches() const;
  /// Tells the limits that the tree changed without an operation.
  void ForgetMeters() const;
  /// Drops the judge's state that depends on the places of directories.
  void ForgetMoves() const;
  /// Starts a new search for files that are not at their recorded paths,
  /// because the base changed.
  void ExpectMoved() const;

 private:
  /// Gives the tree the values of `rewind`, which the journal has. `settle`
  /// then tells the journal which content is in use. Returns the stale caches.
  Result<StaleCaches> GoBack(
      const Rewind& rewind,
      const std::function<void(const Tree::WentBack&)>& settle);
  /// Adds the state of a name before a rollback to `stale.watched`.
  void WatchName(Ino parent, const std::string& name, StaleCaches& stale) const;

  OverlayFilesystem& overlay_;
};

}  // namespace txfs
