#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/diff/changes.h"
#include "fs/overlay/frozen.h"
#include "journal/rewind.h"
#include "journal/savepoint.h"

namespace txfs {

/// The tree at a savepoint. Immutable; its content can be read as long as the
/// savepoint exists.
class Past {
 public:
  /// Takes time proportional to all changes of the transaction.
  static Result<std::shared_ptr<Past>> At(Frozen& frozen,
                                          const Savepoint& savepoint);

  /// Reads content of `ino` at the savepoint. ENOENT if the savepoint is gone.
  Result<size_t> Read(OverlayFilesystem& filesystem, Ino ino, uint64_t offset,
                      MutableByteSpan out) const;

  /// Whether this is `savepoint` in the transaction of `journal`.
  [[nodiscard]] bool Is(const std::shared_ptr<Journal>& journal,
                        const Savepoint& savepoint) const {
    return savepoint_ == savepoint && journal_.lock() == journal;
  }

 private:
  friend class SinceCollector;
  Past(Savepoint savepoint, std::weak_ptr<Journal> journal,
       const struct stat& root)
      : savepoint_(std::move(savepoint)),
        journal_(std::move(journal)),
        tree_(root, root.st_dev) {}

  const Savepoint savepoint_;
  const std::weak_ptr<Journal> journal_;
  Tree tree_;
};

/// Finds the differences between a savepoint and a later one, or now. Works in
/// two steps, as ChangeList.
class SinceList {
 public:
  /// `until`: the later one; null: now.
  static Result<SinceList> Collect(Frozen& frozen, std::shared_ptr<Past> past,
                                   std::shared_ptr<Past> until);
  /// Holds no locks. Drops objects that were touched but are equal.
  Result<std::vector<NetChange>> Settle(OverlayFilesystem& filesystem) &&;

 private:
  friend class SinceCollector;
  struct Candidate {
    NetChange change;
    bool compare = false;  ///< the sizes are equal, the bytes may differ
  };
  std::shared_ptr<Past> past_, until_;
  std::vector<Candidate> candidates_;
};

}  // namespace txfs
