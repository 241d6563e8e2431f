#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/tree/tree.h"
#include "journal/change.h"

namespace txfs {

/// How a part of a transaction ends.
enum class PartEnd { kCommitted, kDiscarded };

/// New paths of moved directories, by base path. A directory that stays while a
/// directory above it moves is included.
using Moves = std::map<std::string, std::string>;

/// The path of `base_path` after the moves.
[[nodiscard]] std::string FollowMoves(const Moves& moves,
                                      const std::string& base_path);

/// The effect of a planned change on the tree before it.
class Settlement {
 public:
  Settlement(const Tree& tree, const Change& change);

  /// Whether the record of the inode is removed by the change.
  [[nodiscard]] bool IsSettled(Ino ino) const { return settled_.contains(ino); }
  /// All base paths of the inode after the change; none: it is gone.
  [[nodiscard]] std::vector<std::string> PathsAfter(const Inode& inode) const;

 private:
  [[nodiscard]] std::string PathAfter(const std::string& base_path) const;

  const Tree& tree_;
  const PartEnd end_;
  std::set<Ino> settled_;
  Moves moves_;
};

}  // namespace txfs
