#include <algorithm>
#include <ranges>
#include <span>

#include "fs/overlay/linked_names.h"
#include "fs/overlay/overlay.h"

namespace txfs {
namespace {

/// What the base has at a path now.
struct Sight {
  bool known = true;  ///< else it could not be asked, and nothing is concluded
  std::optional<BaseObject> object;

  [[nodiscard]] bool IsDirectory() const {
    return object && S_ISDIR(object->st.st_mode);
  }
};

bool IsIdentical(const BaseObject& a, const BaseObject& b) {
  return a.st.st_dev == b.st.st_dev && a.st.st_ino == b.st.st_ino &&
         (a.st.st_mode & S_IFMT) == (b.st.st_mode & S_IFMT);
}

/// One look at the base with everything frozen.
class Refresher {
 public:
  Refresher(Tree& tree, const BaseDirectory& base, BaseFileCache& files)
      : tree_(tree), base_(base), files_(files) {}

  StaleCaches Run() {
    tree_.DropUnheld();
    tree_.ForEach([&](const Inode& inode) { Collect(inode); });
    LookAtAll();
    tree_.DropUnheld();
    return std::move(stale_);
  }

  StaleCaches Run(std::span<const Ino> inos) {
    for (const Ino ino : inos) {
      if (const Inode* inode = tree_.Find(ino)) Collect(*inode);
    }
    LookAtAll();
    return std::move(stale_);
  }

 private:
  struct Name {
    Inode::Link link;
    Sight sight;
  };

  void Collect(const Inode& inode) {
    if (!inode.record.base || inode.IsOrphan()) return;
    if (inode.IsDirectory()) {
      directories_.emplace_back(inode.record.base->path, inode.ino);
    } else if (!inode.upper) {
      files_known_.push_back(inode.ino);
    } else if (inode.links.size() > 1) {
      linked_.push_back(inode.ino);
    }
  }

  void LookAtAll() {
    std::ranges::sort(directories_);
    for (const auto& [path, ino] : directories_) LookAtDirectory(path, ino);
    for (const Ino ino : files_known_) {
      Inode* inode = tree_.Find(ino);
      if (inode != nullptr && !inode->IsOrphan()) LookAtFile(*inode);
    }
    DropNameless();
    for (const Ino ino : linked_) DropLostNames(*tree_.Find(ino));
    // Children first: a directory goes when nothing is left in it.
    for (const Ino ino : gone_ | std::views::reverse) DropDirectory(ino);
  }

  [[nodiscard]] Sight Look(const std::string& path) const {
    auto object = FindObject(base_, path);
    if (!object) return {.known = false, .object = {}};
    return {.known = true, .object = std::move(*object)};
  }

  void LookAtDirectory(const std::string& path, Ino ino) {
    Inode* const found = tree_.Find(ino);
    // It went with the one above it.
    if (found == nullptr || found->IsOrphan()) return;
    Inode& inode = *found;
    const Sight sight = Look(path);
    if (!sight.known) return;
    if (!sight.IsDirectory()) {
      gone_.push_back(ino);
      return;
    }
    tree_.SetLost(inode, false, stale_.inodes);
    const bool is_another =
        !inode.upper && !tree_.IsOrigin(inode, sight.object->st) &&
        !Told::Of(*inode.record.base).Covers(sight.object->st);
    if (is_another && ino != kRootIno) {
      // Who has it open, or something in it, was let in by what it was.
      DropBelow(inode);
      gone_.push_back(ino);
      return;
    }
    // An upper one keeps its record, which is what its commit compares; what
    // it shows of the base may have changed once more.
    if (!inode.upper && !tree_.Differs(inode, *sight.object)) return;
    if (!inode.upper) tree_.Revise(inode, *sight.object);
    ++inode.version;
    stale_.inodes.push_back(ino);
    AddUnknownNames(path, inode);
  }

  /// Of what is known in it only what the transaction changed stays.
  void DropBelow(const Inode& directory) {
    std::vector<std::pair<Ino, std::string>> known;
    for (const auto& [name, slot] : directory.slots) {
      if (slot.cached != kNoIno) known.emplace_back(slot.cached, name);
    }
    for (const auto& [ino, name] : known) {
      Inode* child = tree_.Find(ino);
      if (child == nullptr || child->upper) continue;
      if (child->IsDirectory()) DropBelow(*child);
      if (child->known_children != 0) continue;
      stale_.inodes.push_back(ino);
      DropNames(ino, {Name{.link = {directory.ino, name}, .sight = {}}});
    }
  }

  /// The kernel may remember that these do not exist.
  void AddUnknownNames(const std::string& path, const Inode& directory) {
    const auto entries = base_.List(path);
    if (!entries) return;
    for (const BaseEntry& entry : *entries) {
      if (directory.slots.contains(entry.name)) continue;
      stale_.names.push_back({directory.ino, entry.name});
    }
  }

  void LookAtFile(Inode& inode) {
    std::vector<Name> names;
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = tree_.Find(link.parent);
      if (parent == nullptr || !parent->record.base) return;
      names.push_back(
          {link, Look(JoinPath(parent->record.base->path, link.name))});
      if (!names.back().sight.known) return;
    }
    const auto is_same = [&](const Name& name) {
      return name.sight.object && tree_.IsOrigin(inode, name.sight.object->st);
    };
    const auto stays = std::ranges::find_if(names, is_same);
    if (stays != names.end()) {
      const BaseObject object = *stays->sight.object;
      std::erase_if(names, is_same);
      Revise(inode, object);
    } else if (IsReplacedAsOne(inode, names)) {
      // A file that was rewritten is the same one to whoever has it open.
      files_.Drop(inode.ino);
      Revise(inode, *names.front().sight.object);
      return;
    }
    // What the kernel holds may be open, and have a name that nobody looked up.
    const bool may_have_others = inode.lookups != 0 &&
                                 names.size() == inode.links.size() &&
                                 names.size() < inode.record.base->nlink;
    if (may_have_others) {
      nameless_.emplace_back(inode.ino, std::move(names));
    } else {
      DropNames(inode.ino, names);
    }
  }

  void DropNameless() {
    std::vector<Inode*> files;
    for (const auto& [ino, names] : nameless_) files.push_back(tree_.Find(ino));
    std::ranges::copy(ShowElsewhere(tree_, base_, files),
                      std::back_inserter(stale_.names));
    for (const auto& [ino, names] : nameless_) {
      DropNames(ino, names);
      Inode* inode = tree_.Find(ino);
      const bool stays = inode != nullptr && !inode->IsOrphan();
      if (!stays) continue;
      const Sight sight = Look(inode->record.base->path);
      if (sight.object) Revise(*inode, *sight.object);
    }
  }

  /// An upper file keeps its record, which is what its commit compares. Of its
  /// names those go that only the base gave it, as long as another one stays;
  /// but the noted one of a changed file stays where others put something
  /// there, or deleted it: a conflict.
  void DropLostNames(const Inode& inode) {
    std::vector<Inode::Link> lost;
    bool has_others = false;
    for (const Inode::Link& link : inode.links) {
      const auto path = tree_.BasePathOf(link);
      const Sight sight =
          path ? Look(*path) : Sight{.known = false, .object = {}};
      const bool there =
          sight.object && tree_.IsOrigin(inode, sight.object->st);
      const bool contested = path == inode.record.base->path &&
                             (sight.object || inode.lost) &&
                             !inode.IsUnchanged();
      if (!sight.known || there) {
        has_others = true;
      } else if (!contested) {
        lost.push_back(link);
      }
    }
    if (!has_others) return;
    for (const Inode::Link& link : lost) DropName(inode.ino, link);
  }

  /// Whether all names lead to one other object of the same type, which
  /// nothing else here is.
  bool IsReplacedAsOne(const Inode& inode, const std::vector<Name>& names) {
    if (names.empty() || !names.front().sight.object) return false;
    const BaseObject& first = *names.front().sight.object;
    // Who has it open must be one who may read that.
    return TypeOfMode(first.st.st_mode) == inode.attr().type &&
           Told::Of(*inode.record.base).Covers(first.st) &&
           tree_.FindBaseFile(first.path, first.st) == nullptr &&
           std::ranges::all_of(names, [&](const Name& name) {
             return name.sight.object && IsIdentical(*name.sight.object, first);
           });
  }

  void Revise(Inode& inode, const BaseObject& object) {
    if (!tree_.Differs(inode, object)) return;
    tree_.Revise(inode, object);
    stale_.inodes.push_back(inode.ino);
  }

  void DropNames(Ino ino, const std::vector<Name>& names) {
    if (names.empty()) return;
    Inode& inode = *tree_.Find(ino);
    // Who has it open reads on, if it was read lately.
    const SharedFd open =
        files_.Find(ino, BaseIdentity::Of(*inode.record.base));
    for (const Name& name : names) DropName(ino, name.link);
    Inode* left = tree_.Find(ino);
    if (left != nullptr && left->IsOrphan()) {
      left->pinned_base = open;
      stale_.inodes.push_back(ino);
    }
    if (left == nullptr || left->IsOrphan()) files_.Drop(ino);
  }

  /// One with changes of the transaction in it stays: they are still to be
  /// seen, and a conflict at its commit.
  void DropDirectory(Ino ino) {
    Inode* inode = tree_.Find(ino);
    if (inode == nullptr || ino == kRootIno) return;
    tree_.SetLost(*inode, true, stale_.inodes);
    if (inode->upper || inode->known_children != 0) return;
    const std::vector<Inode::Link> links = inode->links;
    stale_.inodes.push_back(ino);
    for (const Inode::Link& link : links) DropName(ino, link);
  }

  /// The directory may have been kept for it.
  void DropName(Ino ino, const Inode::Link& link) {
    stale_.names.push_back({link.parent, link.name});
    tree_.DropLink(*tree_.Find(ino), link);
    Inode* left = tree_.Find(ino);
    if (left != nullptr && left->IsOrphan()) left->taken = true;
    const Inode* parent = tree_.Find(link.parent);
    if (parent != nullptr && parent->lost) DropDirectory(link.parent);
  }

  Tree& tree_;
  const BaseDirectory& base_;
  BaseFileCache& files_;
  std::vector<std::pair<std::string, Ino>> directories_;  ///< by base path
  std::vector<Ino> files_known_;
  std::vector<std::pair<Ino, std::vector<Name>>> nameless_;
  std::vector<Ino> linked_;  ///< upper files of several names
  std::vector<Ino> gone_;    ///< directories, parents first
  StaleCaches stale_;
};

}  // namespace

void OverlayFilesystem::Frozen::ForgetDirectories() const {
  base.DropCache();
  filesystem.directories_.Clear();
  filesystem.links_.Clear();
  filesystem.moved_.Forget();
  [&]() NO_THREAD_SAFETY_ANALYSIS { filesystem.meters_.ForgetBase(); }();
}

void OverlayFilesystem::Frozen::ExpectMoved() const {
  filesystem.moved_.Expect(FilesReadFrom(tree));
}

StaleCaches OverlayFilesystem::Frozen::Refresh() {
  ForgetDirectories();
  const bool follows = !IsHalted();
  tree.ForEachUpper([](Inode& inode) { inode.sought = false; });
  // Before names go that only memory knows.
  StaleCaches stale = follows ? FollowNames(tree.upper()) : StaleCaches();
  stale.Append(Refresher(tree, base, filesystem.files_).Run());
  // By now nothing else is taken for what it follows.
  if (follows) stale.Append(FollowTouched(tree.upper()));
  ExpectMoved();
  return stale;
}

StaleCaches OverlayFilesystem::Frozen::Refresh(std::span<const Ino> inos) {
  return Refresher(tree, base, filesystem.files_).Run(inos);
}

}  // namespace txfs
