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

/// The tree as it was at a savepoint. Does not change; its content can be read
/// as long as the savepoint exists.
class Past {
 public:
  /// Costs what the whole transaction has changed.
  static Result<std::shared_ptr<Past>> At(Frozen& frozen,
                                          const Savepoint& savepoint);

  /// Reads content of `ino` as it was. ENOENT: the savepoint is gone.
  Result<size_t> Read(OverlayFilesystem& filesystem, Ino ino, uint64_t offset,
                      MutableByteSpan out) const;

  /// Whether this is `savepoint` of the transaction that has `journal`.
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

/// Finds the differences between a savepoint and now. Two steps, as ChangeList.
class SinceList {
 public:
  static Result<SinceList> Collect(Frozen& frozen, std::shared_ptr<Past> past);
  /// Without locks: drops what was touched but is equal.
  Result<std::vector<NetChange>> Settle(OverlayFilesystem& filesystem) &&;

 private:
  friend class SinceCollector;
  struct Candidate {
    NetChange change;
    bool compare = false;  ///< of the same size, but the bytes may differ
  };
  std::shared_ptr<Past> past_;
  std::vector<Candidate> candidates_;
};

}  // namespace txfs
