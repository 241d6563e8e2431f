#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/tree/tree.h"
#include "journal/change.h"

namespace txfs {

/// How a part of a transaction ends: in the base, or not at all.
enum class PartEnd { kCommitted, kDiscarded };

/// Directories by base path, and where they are. One that has the path that it
/// had is among them where one above it has moved: it did not go along.
using Moves = std::map<std::string, std::string>;

/// Where a base path is when directories above it, or it, have moved.
[[nodiscard]] std::string FollowMoves(const Moves& moves,
                                      const std::string& base_path);

/// What a planned change means for the tree as it was before.
class Settlement {
 public:
  Settlement(const Tree& tree, const Change& change);

  /// Its record goes: it is the base's, or gone.
  [[nodiscard]] bool IsSettled(Ino ino) const { return settled_.contains(ino); }
  /// Where the inode is to be found in the base afterwards; nothing: nowhere.
  [[nodiscard]] std::vector<std::string> PathsAfter(const Inode& inode) const;

 private:
  [[nodiscard]] std::string PathAfter(const std::string& base_path) const;

  const Tree& tree_;
  const PartEnd end_;
  std::set<Ino> settled_;
  Moves moves_;
};

}  // namespace txfs
