#include "fs/tree/settlement.h"

#include <optional>
#include <variant>

#include "fs/base/base_directory.h"

namespace txfs {

std::string FollowMoves(const Moves& moves, const std::string& base_path) {
  if (moves.empty()) return base_path;
  for (std::string above = base_path; !above.empty();
       above = ParentPath(above)) {
    const auto move = moves.find(above);
    if (move != moves.end()) {
      return move->second + base_path.substr(above.size());
    }
  }
  return base_path;
}

Settlement::Settlement(const Tree& tree, const Change& change)
    : tree_(tree),
      end_(change.op == Op::kCommit ? PartEnd::kCommitted
                                    : PartEnd::kDiscarded) {
  for (const Edit& edit : change.edits) {
    const auto* record = std::get_if<InodeEdit>(&edit);
    if (record == nullptr) continue;
    const Inode* inode = tree.Find(record->ino);
    if (!record->after) settled_.insert(record->ino);
    const bool may_move = end_ == PartEnd::kCommitted && inode != nullptr &&
                          inode->IsDirectory() && inode->record.base;
    if (!may_move) continue;
    const std::string& before = inode->record.base->path;
    std::optional<std::string> after;
    if (record->after) {
      if (record->after->base) after = record->after->base->path;
    } else {
      after = tree.VisiblePath(*inode);
    }
    if (after) moves_[before] = *after;
  }
}

std::string Settlement::PathAfter(const std::string& base_path) const {
  return FollowMoves(moves_, base_path);
}

std::vector<std::string> Settlement::PathsAfter(const Inode& inode) const {
  if (IsSettled(inode.ino)) {
    return end_ == PartEnd::kCommitted ? tree_.VisiblePaths(inode)
                                       : tree_.KnownBasePaths(inode);
  }
  if (!inode.record.base || inode.IsOrphan()) return {};
  std::vector<std::string> paths = tree_.KnownBasePaths(inode);
  for (std::string& path : paths) path = PathAfter(path);
  return paths;
}

}  // namespace txfs
