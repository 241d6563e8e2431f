#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// What it takes to undo a run of changes, with everything in it once: the
/// value it had before the oldest of them. Its size goes with what the changes
/// touched, not with how often.
struct Rewind {
  /// What an inode was.
  struct PastInode {
    /// What becomes of the record that it has now.
    enum class Record {
      kStays,    ///< but for its attributes
      kReturns,  ///< it is `record` again
      /// There was none: `record` is as the first change found the inode, or
      /// nothing, in a log that is damaged.
      kVanishes,
    };
    Ino ino = kNoIno;
    Record has = Record::kStays;
    std::optional<InodeRecord> record;
    std::optional<Attr> attr;  ///< kStays: none if they are what they were
    /// By offset; none: no extent started there.
    std::map<uint64_t, std::optional<Extent>> extents;
  };
  /// What undoing does to a record of content in the spool.
  struct PastContent {
    uint32_t length = 0;  ///< of the whole record
    int64_t live = 0;     ///< bytes of it that come (or go) with the undoing
    Lsn born = kNoLsn;    ///< change that brought it; none: an older one
    Lsn died = kNoLsn;    ///< last change that took some of it away
  };
  using Place = std::pair<uint32_t, uint64_t>;  ///< segment, position

  uint64_t changes = 0;          ///< how many are undone
  std::deque<PastInode> inodes;  ///< each once, in no order
  std::map<std::pair<Ino, std::string>, DentryValue> dentries;
  std::map<std::pair<Ino, std::string>, std::optional<std::string>> xattrs;
  std::map<Place, PastContent> content;

  /// Adds a change, which is older than all before.
  void Undo(Lsn lsn, Change change);
  /// Undoes everything in a state that has all of the changes.
  void ApplyTo(State& state) const;

  /// `extent` comes to be alive, or stops to be, with the undoing, apart from
  /// what the changes say: as a part of a file that only a process has.
  void CountLive(const Extent& extent, int sign);

 private:
  void Undo(Lsn lsn, InodeEdit& edit);
  void Undo(Lsn lsn, AttrEdit& edit);
  void Undo(Lsn lsn, DentryEdit& edit);
  void Undo(Lsn lsn, ExtentEdit& edit);
  void Undo(Lsn lsn, XattrEdit& edit);
  PastInode& PastOf(Ino ino);
  PastContent& ContentOf(const Extent& extent);

  std::unordered_map<Ino, size_t> by_ino_;  ///< place in `inodes`
};

}  // namespace txfs
