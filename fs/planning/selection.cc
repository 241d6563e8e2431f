#include "fs/planning/selection.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "fs/overlay/linked_names.h"
#include "fs/planning/conflicts.h"

namespace txfs {
namespace {

/// Grows a selection until nothing in it depends on what is not.
class Selector {
 public:
  Selector(Frozen& frozen, SelectionParents parents)
      : tree_(frozen.tree), base_(frozen.base), parents_(parents) {
    tree_.ForEachUpper([&](Inode& inode) {
      upper_.push_back(&inode);
      if (!inode.record.base) return;
      by_base_[inode.record.base->path] = &inode;
      const bool shared = !inode.IsDirectory() && inode.record.base->nlink > 1;
      if (shared) by_number_.emplace(inode.record.base->ino, &inode);
    });
  }

  Status Add(const std::string& path) {
    bool found = false;
    for (const Inode* inode : upper_) {
      found = AddInodeBelow(*inode, path) || found;
      if (inode->IsDirectory()) found = AddNamesBelow(*inode, path) || found;
    }
    if (found || AddMoveAbove(path)) return {};
    return Fail(0, "the transaction changed nothing at " + ShownPath(path),
                "`txfs status` and `txfs diff --name-status` show its changes");
  }

  /// As Add, of a path at which there may be no change.
  void AddBelow(const std::string& path) {
    for (const Inode* inode : upper_) {
      AddInodeBelow(*inode, path);
      if (inode->IsDirectory()) AddNamesBelow(*inode, path);
    }
  }

  /// Begins a selection with one thing. `bad`: with any of it, what the
  /// selection becomes does not matter.
  void Restart(const Selection& one, const Selection& bad) {
    selection_ = one;
    new_names_.assign(one.names.begin(), one.names.end());
    new_inodes_.assign(one.inodes.begin(), one.inodes.end());
    placed_.clear();
    above_.clear();
    bad_ = &bad;
    is_bad_ = false;
  }
  [[nodiscard]] bool is_bad() const { return is_bad_; }

  [[nodiscard]] const Selection& selection() const { return selection_; }

  Selection Close() {
    while (!is_bad_ && (!new_names_.empty() || !new_inodes_.empty())) {
      if (!new_names_.empty()) {
        const auto [directory, name] = std::move(new_names_.back());
        new_names_.pop_back();
        CloseName(*tree_.Find(directory), name);
      } else {
        const Ino ino = new_inodes_.back();
        new_inodes_.pop_back();
        CloseInode(*tree_.Find(ino));
      }
    }
    return std::move(selection_);
  }

 private:
  void Select(const Inode& inode) {
    if (!inode.upper || inode.ino == kRootIno) return;
    if (selection_.inodes.insert(inode.ino).second) {
      new_inodes_.push_back(inode.ino);
      if (bad_ != nullptr && bad_->inodes.contains(inode.ino)) is_bad_ = true;
    }
  }

  void Select(const Inode& directory, const std::string& name) {
    if (selection_.names.emplace(directory.ino, name).second) {
      new_names_.emplace_back(directory.ino, name);
      const bool bad = bad_ != nullptr &&
                       bad_->names.contains(std::pair(directory.ino, name));
      if (bad) is_bad_ = true;
    }
  }

  bool AddInodeBelow(const Inode& inode, const std::string& path) {
    if (inode.ino == kRootIno) {
      // Nothing needs its attributes, so only who asks for it gets them.
      if (path.empty()) selection_.inodes.insert(kRootIno);
      return path.empty();
    }
    const std::optional<std::string> visible =
        tree_.VisiblePath(inode, {}, &paths_);
    const bool below =
        visible
            ? std::ranges::any_of(tree_.VisiblePaths(inode, &paths_),
                                  [&](const std::string& known) {
                                    return IsAtOrBelow(known, path);
                                  })
            : inode.record.base && IsAtOrBelow(inode.record.base->path, path);
    if (below) Select(inode);
    return below;
  }

  bool AddNamesBelow(const Inode& directory, const std::string& path) {
    const auto visible = tree_.VisiblePath(directory, {}, &paths_);
    const auto& base = directory.record.base;
    bool found = false;
    for (const auto& [name, slot] : directory.names->slots) {
      if (!slot.IsUpper()) continue;
      const bool below =
          (visible && IsAtOrBelow(JoinPath(*visible, name), path)) ||
          (base && IsAtOrBelow(JoinPath(base->path, name), path));
      if (below) Select(directory, name);
      found = found || below;
    }
    return found;
  }

  /// What only came along with a directory goes with it.
  bool AddMoveAbove(const std::string& path) {
    const Inode* nearest = nullptr;
    size_t longest = 0;
    for (const Inode* inode : upper_) {
      if (!inode->IsDirectory() || !inode->record.base) continue;
      // Without a name of its own it is where the one above it is.
      const bool moved = inode->IsOrphan() ||
                         (!inode->links.empty() && !tree_.IsAtItsPlace(*inode));
      if (!moved) continue;
      for (const std::string& place :
           {inode->record.base->path,
            tree_.VisiblePath(*inode, {}, &paths_).value_or("")}) {
        const bool is_above = IsAtOrBelow(ParentPath(path), place);
        if (!is_above || place.size() <= longest) continue;
        nearest = inode;
        longest = place.size();
      }
    }
    if (nearest != nullptr) Select(*nearest);
    return nearest != nullptr;
  }

  void CloseName(const Inode& directory, const std::string& name) {
    if (parents_ == SelectionParents::kNeeded) SelectPlace(directory);
    if (directory.IsOrphan()) Select(directory);
    if (!directory.Knows(name)) return;
    if (directory.UpperSlot(name) != nullptr) {
      const Inode* child = tree_.FindChild(directory, name);
      if (child != nullptr) Select(*child);
    }
    // The other end of what was here in the base.
    if (!directory.record.base) return;
    const std::string path = JoinPath(directory.record.base->path, name);
    const auto moved = by_base_.find(path);
    if (moved != by_base_.end()) return Select(*moved->second);
    // Or a file that is known by another of its names.
    const Inode* file = FindLinked(path);
    if (file != nullptr) Select(*file);
  }

  void CloseInode(const Inode& inode) {
    SelectNames(inode);
    if (inode.IsDirectory() && inode.IsOrphan()) {
      // A deleted directory is one thing with all that was in it.
      for (const auto& [name, slot] : inode.names->slots) {
        if (slot.IsUpper()) Select(inode, name);
      }
    }
    if (parents_ == SelectionParents::kApart && inode.IsDirectory() &&
        !inode.record.base) {
      // What goes takes along what is in it.
      for (const auto& [name, slot] : inode.names->slots) Select(inode, name);
      inode.ForEachCached(
          [&](const std::string& name, const Inode&) { Select(inode, name); });
    }
    if (parents_ == SelectionParents::kApart && inode.IsDirectory()) {
      SelectWhatWouldCloseACircle(inode);
    }
    if (parents_ == SelectionParents::kNeeded) {
      if (inode.record.base) SelectAbove(inode.record.base->path);
      for (const Inode::Link& link : inode.links) {
        const Inode* parent = tree_.Find(link.parent);
        if (parent != nullptr) SelectPlace(*parent);
      }
    }
  }

  /// A directory that goes back to where it was may not come to lie in itself:
  /// what was moved into it from above that place goes back, too.
  void SelectWhatWouldCloseACircle(const Inode& directory) {
    std::vector<const Inode*> moved;
    std::set<Ino> seen;
    for (const Inode* above = ParentAfter(directory);
         above != nullptr && seen.insert(above->ino).second;
         above = ParentAfter(*above)) {
      if (above != &directory) {
        moved.push_back(above);
        continue;
      }
      for (const Inode* each : moved) {
        const Inode* before = ParentInBase(*each);
        if (before != nullptr && before != ParentAfter(*each)) Select(*each);
      }
      return;
    }
  }

  /// The directory that a directory will be in when the selection was
  /// discarded; null for the root and for what will be nowhere.
  const Inode* ParentAfter(const Inode& directory) {
    if (selection_.inodes.contains(directory.ino)) {
      return ParentInBase(directory);
    }
    if (directory.links.empty()) return nullptr;
    return tree_.Find(directory.links.front().parent);
  }

  /// The one that it was in in the base, or the next above it that anything is
  /// known of.
  const Inode* ParentInBase(const Inode& directory) {
    if (!directory.record.base) return nullptr;
    std::string path = directory.record.base->path;
    const Inode* parent = nullptr;
    while (parent == nullptr && !path.empty()) {
      path = ParentPath(path);
      parent = tree_.FindBaseDirectory(path);
    }
    return parent;
  }

  /// The names an inode has, and the one that it no longer has.
  void SelectNames(const Inode& inode) {
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = tree_.Find(link.parent);
      if (parent == nullptr) continue;
      const auto slot = parent->names->slots.find(link.name);
      const bool upper = slot != parent->names->slots.end() &&
                         slot->second.upper.kind == DentryKind::kInode;
      if (upper) Select(*parent, link.name);
    }
    if (!inode.record.base) return;
    if (!inode.IsDirectory() && inode.record.base->nlink > 1) {
      for (const auto& [directory, name] : HiddenNames()[inode.ino]) {
        Select(*tree_.Find(directory), name);
      }
    }
    const std::string& path = inode.record.base->path;
    const Inode* parent =
        tree_.FindBaseDirectory(std::string(ParentPath(path)));
    if (parent == nullptr) return;
    const std::string name(BaseName(path));
    if (parent->UpperSlot(name) != nullptr) Select(*parent, name);
  }

  /// The names that files of several names have lost.
  std::map<Ino, std::vector<std::pair<Ino, std::string>>>& HiddenNames() {
    if (hidden_) return *hidden_;
    hidden_.emplace();
    for (const Inode* directory : upper_) {
      if (!directory->record.base || !directory->IsDirectory()) continue;
      for (const auto& [name, slot] : directory->names->slots) {
        if (!slot.IsUpper()) continue;
        const Inode* file =
            FindLinked(JoinPath(directory->record.base->path, name));
        if (file != nullptr) {
          (*hidden_)[file->ino].emplace_back(directory->ino, name);
        }
      }
    }
    return *hidden_;
  }

  /// The inode of the base's file of several names at `path`, which may be the
  /// only one that is left.
  const Inode* FindLinked(const std::string& path) {
    const auto st = base_.Stat(path);
    if (!st || S_ISDIR(st->st_mode)) return nullptr;
    if (st->st_nlink > 1) return tree_.FindBaseFile(path, *st);
    const auto found = by_number_.equal_range(st->st_ino);
    for (auto each = found.first; each != found.second; ++each) {
      if (tree_.IsOrigin(*each->second, *st)) return each->second;
    }
    return nullptr;
  }

  /// What it takes for `directory` to be where it is: its own names if they
  /// are new, and those of the directories above.
  void SelectPlace(const Inode& directory) {
    if (directory.ino == kRootIno) return;
    if (!placed_.insert(directory.ino).second) return;
    if (!directory.record.base) {
      Select(directory);
    } else {
      SelectNames(directory);
      SelectAbove(directory.record.base->path);
    }
    for (const Inode::Link& link : directory.links) {
      const Inode* parent = tree_.Find(link.parent);
      if (parent != nullptr) SelectPlace(*parent);
    }
  }

  /// Directories above a base path that were moved come along.
  void SelectAbove(const std::string& base_path) {
    for (std::string path(ParentPath(base_path)); !path.empty();
         path = ParentPath(path)) {
      const Inode* directory = tree_.FindBaseDirectory(path);
      // Those above it were looked at, too.
      if (directory != nullptr && !above_.insert(directory->ino).second) return;
      if (directory == nullptr || !directory->upper) continue;
      const size_t before = selection_.names.size();
      SelectNames(*directory);
      if (selection_.names.size() != before) Select(*directory);
    }
  }

  Tree& tree_;
  PathMemo paths_;
  std::set<Ino> placed_, above_;  ///< what was gone through for a place
  const BaseDirectory& base_;
  const SelectionParents parents_;
  std::vector<const Inode*> upper_;
  std::unordered_map<std::string_view, const Inode*> by_base_;
  /// Files of several names by the base's inode number, whatever its device.
  std::unordered_multimap<uint64_t, const Inode*> by_number_;
  std::optional<std::map<Ino, std::vector<std::pair<Ino, std::string>>>>
      hidden_;
  Selection selection_;
  std::vector<std::pair<Ino, std::string>> new_names_;
  std::vector<Ino> new_inodes_;
  const Selection* bad_ = nullptr;
  bool is_bad_ = false;  ///< something of bad_ is in the selection
};

/// Judges whether a selection has an effect outside of some paths.
class Fence {
 public:
  Fence(Frozen& frozen, const std::vector<std::string>& paths,
        const std::vector<std::string>& except)
      : frozen_(frozen), paths_(paths), except_(except) {}

  bool Holds(const Selection& selection) {
    Selection judged{.names = selection.names, .inodes = {}};
    for (const Ino ino : selection.inodes) {
      const Inode* inode = frozen_.tree.Find(ino);
      if (inode == nullptr || OnlyLosesNames(*inode)) continue;
      if (IsLinkedOutside(*inode)) return false;
      judged.inodes.insert(ino);
    }
    return std::ranges::all_of(
        PathsOf(frozen_, judged),
        [&](const std::string& path) { return Admits(selection, path); });
  }

 private:
  /// Whether all that happened to a file is that names of it were deleted,
  /// which are in the selection themselves.
  [[nodiscard]] bool OnlyLosesNames(const Inode& inode) const {
    return !inode.IsDirectory() && inode.record.base && inode.IsUnchanged() &&
           frozen_.tree.UpperNames(inode) == 0;
  }

  bool Admits(const Selection& selection, const std::string& path) {
    const bool excepted = std::ranges::any_of(
        except_, [&](const auto& each) { return IsAtOrBelow(path, each); });
    if (excepted) return false;
    const bool inside = std::ranges::any_of(
        paths_, [&](const auto& each) { return IsAtOrBelow(path, each); });
    return inside || IsNewAbove(selection, path);
  }

  /// Whether `path` is a new directory that has one of the paths in it.
  bool IsNewAbove(const Selection& selection, const std::string& path) {
    const bool is_above = std::ranges::any_of(
        paths_, [&](const auto& each) { return IsAtOrBelow(each, path); });
    if (!is_above) return false;
    const auto st = frozen_.base.Stat(path);
    if (st || !IsGone(st.error())) return false;
    return std::ranges::any_of(selection.inodes, [&](Ino ino) {
      const Inode* inode = frozen_.tree.Find(ino);
      return inode != nullptr && inode->IsDirectory() && !inode->record.base &&
             frozen_.tree.VisiblePath(*inode) == path;
    });
  }

  /// Whether the base has a name of the file outside. A commit may change the
  /// content of all names.
  bool IsLinkedOutside(const Inode& inode) {
    if (inode.IsDirectory() || !inode.record.base) return false;
    const BaseOrigin& origin = *inode.record.base;
    const auto st = frozen_.base.Stat(origin.path);
    uint64_t links = origin.nlink;
    if (st && frozen_.tree.IsOrigin(inode, *st)) links = st->st_nlink;
    return links > 1 && NamesInside()[inode.ino].size() < links;
  }

  /// The base names at and below the paths of changed files with several.
  std::map<Ino, std::set<std::string>>& NamesInside() {
    if (names_) return *names_;
    names_.emplace();
    std::unordered_multimap<uint64_t, const Inode*> wanted;
    frozen_.tree.ForEachUpper([&](Inode& inode) {
      const bool is_file = !inode.IsDirectory() && inode.record.base;
      if (is_file) wanted.emplace(inode.record.base->ino, &inode);
    });
    std::vector<std::string> waiting = paths_;
    while (!waiting.empty()) {
      const std::string path = std::move(waiting.back());
      waiting.pop_back();
      const auto st = frozen_.base.Stat(path);
      if (!st) continue;
      if (!S_ISDIR(st->st_mode)) {
        NoteName(wanted, path, *st);
        continue;
      }
      const auto entries = frozen_.base.List(path);
      if (!entries) continue;  // its names then count as outside
      for (const BaseEntry& entry : *entries) {
        const bool matters =
            entry.type == FileType::kDirectory || wanted.contains(entry.ino);
        if (matters) waiting.push_back(JoinPath(path, entry.name));
      }
    }
    return *names_;
  }

  void NoteName(const std::unordered_multimap<uint64_t, const Inode*>& wanted,
                const std::string& path, const struct stat& st) {
    const auto found = wanted.equal_range(st.st_ino);
    for (auto each = found.first; each != found.second; ++each) {
      const Inode& inode = *each->second;
      if (frozen_.tree.IsOrigin(inode, st)) (*names_)[inode.ino].insert(path);
    }
  }

  Frozen& frozen_;
  const std::vector<std::string>& paths_;
  const std::vector<std::string>& except_;
  std::optional<std::map<Ino, std::set<std::string>>> names_;
};

/// Those parts of a selection that depend on nothing outside of the fence.
class FencedSelector {
 public:
  FencedSelector(Selector& selector, Fence& fence)
      : selector_(selector), fence_(fence) {}

  Selection Sift(const Selection& all) {
    for (const auto& name : all.names) {
      if (!fit_.names.contains(name)) Try({.names = {name}, .inodes = {}});
    }
    for (const Ino ino : all.inodes) {
      if (!fit_.inodes.contains(ino)) Try({.names = {}, .inodes = {ino}});
    }
    return std::move(fit_);
  }

 private:
  void Try(const Selection& one) {
    selector_.Restart(one, bad_);
    Selection closed = selector_.Close();
    const bool fits = !selector_.is_bad() && fence_.Holds(closed);
    Selection& to = fits ? fit_ : bad_;
    if (!fits) closed = one;
    to.names.merge(closed.names);
    to.inodes.merge(closed.inodes);
  }

  Selector& selector_;
  Fence& fence_;
  Selection fit_, bad_;
};

}  // namespace

Result<Selection> SelectWithin(Frozen& frozen,
                               const std::vector<std::string>& paths,
                               const std::vector<std::string>& except) {
  NoteNamesBelow(frozen.tree, frozen.base, paths);
  Selector selector(frozen, SelectionParents::kNeeded);
  for (const std::string& path : paths) selector.AddBelow(path);
  const Selection all = selector.selection();
  Selection closed = selector.Close();
  Fence fence(frozen, paths, except);
  if (fence.Holds(closed)) return closed;
  return FencedSelector(selector, fence).Sift(all);
}

Result<Selection> SelectPaths(Frozen& frozen,
                              const std::vector<std::string>& paths,
                              SelectionParents parents) {
  NoteNamesBelow(frozen.tree, frozen.base, paths);
  Selector selector(frozen, parents);
  for (const std::string& path : paths) TRY(selector.Add(path));
  return selector.Close();
}

std::set<std::string> PathsOf(Frozen& frozen, const Selection& selection) {
  const Tree& tree = frozen.tree;
  std::set<std::string> paths;
  PathMemo memo;
  for (const auto& [ino, name] : selection.names) {
    const Inode* directory = tree.Find(ino);
    if (directory == nullptr) continue;
    if (const auto visible = tree.VisiblePath(*directory, {}, &memo)) {
      paths.insert(JoinPath(*visible, name));
    }
    if (directory->record.base) {
      paths.insert(JoinPath(directory->record.base->path, name));
    }
  }
  for (const Ino ino : selection.inodes) {
    const Inode* inode = tree.Find(ino);
    if (inode == nullptr) continue;
    for (std::string& path : tree.VisiblePaths(*inode, &memo)) {
      paths.insert(std::move(path));
    }
    if (inode->record.base) paths.insert(inode->record.base->path);
  }
  return paths;
}

Selection AllBut(Frozen& frozen, const Selection& selection) {
  Selection rest;
  frozen.tree.ForEachUpper([&](Inode& inode) {
    if (!selection.inodes.contains(inode.ino)) rest.inodes.insert(inode.ino);
    for (const auto& [name, slot] : inode.names->slots) {
      if (!slot.IsUpper()) continue;
      if (!selection.names.contains({inode.ino, name})) {
        rest.names.emplace(inode.ino, name);
      }
    }
  });
  return rest;
}

}  // namespace txfs
