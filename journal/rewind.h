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

/// The combined undo of a run of changes: for each item, the value it had
/// before the oldest of them. The size depends on the number of items touched,
/// not on the number of changes.
struct Rewind {
  /// The past state of an inode.
  struct PastInode {
    /// What happens to the inode's present record.
    enum class Record {
      kStays,    ///< stays, except for its attributes
      kReturns,  ///< `record` replaces it
      /// It is removed. `record` is as the first change made it; none if the
      /// log is damaged.
      kVanishes,
    };
    Ino ino = kNoIno;
    Record has = Record::kStays;
    std::optional<InodeRecord> record;
    std::optional<Attr> attr;  ///< kStays: none if they do not change
    /// By offset; none: no extent began there.
    std::map<uint64_t, std::optional<Extent>> extents;
  };
  /// What undoing changes about a record of content in the spool.
  struct PastContent {
    uint32_t length = 0;  ///< of the whole record
    int64_t live = 0;  ///< bytes of it that become live (or, if negative, dead)
    /// The change that added it; none: an older one. A revert does not add
    /// content, it uses what a savepoint has kept.
    Lsn born = kNoLsn;
    Lsn died = kNoLsn;  ///< the last change that removed a part of it
  };
  using Place = std::pair<uint32_t, uint64_t>;  ///< segment, position

  uint64_t changes = 0;          ///< number of changes undone
  std::deque<PastInode> inodes;  ///< no duplicates, in no order
  std::map<std::pair<Ino, std::string>, DentryValue> dentries;
  std::map<std::pair<Ino, std::string>, std::optional<std::string>> xattrs;
  std::map<Place, PastContent> content;

  /// Adds the undo of a change that is older than all before.
  void Undo(Lsn lsn, Change change);
  /// Undoes all of the changes in `state`, which has them.
  void ApplyTo(State& state) const;

  /// Counts `extent` as live (`sign` 1) or dead (-1) after the undo, beyond
  /// what the changes say: part of a file without a name that is still open.
  void CountLive(const Extent& extent, int sign);

 private:
  void Undo(InodeEdit& edit);
  void Undo(AttrEdit& edit);
  void Undo(DentryEdit& edit);
  /// `born`: the change that added the content; none: older ones did.
  void Undo(Lsn lsn, Lsn born, ExtentEdit& edit);
  void Undo(XattrEdit& edit);
  PastInode& PastOf(Ino ino);
  PastContent& ContentOf(const Extent& extent);

  std::unordered_map<Ino, size_t> by_ino_;  ///< index in `inodes`
};

}  // namespace txfs
