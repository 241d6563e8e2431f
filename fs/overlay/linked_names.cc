#include "fs/overlay/linked_names.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "fs/base/base_mounts.h"
#include "fs/base/link_search.h"
#include "fs/origin/preimages.h"
#include "journal/support/pieces.h"

namespace txfs {
namespace {

class OtherNames {
 public:
  OtherNames(Tree& tree, const BaseDirectory& base)
      : tree_(tree), base_(base) {}

  void LookForChanged(const std::vector<Inode*>& changed) {
    std::vector<Inode*> nameless;
    for (Inode* inode : changed) {
      const bool is_file = !inode->IsDirectory() && !inode->IsOrphan() &&
                           inode->record.base.has_value();
      if (is_file && !LookAt(*inode)) nameless.push_back(inode);
    }
    for (Inode* inode : nameless) inode->sought = true;
    std::set<Ino> found;
    Search(nameless, Names::kShown, [&](Inode& inode, const std::string& path) {
      if (!NoteAt(inode, path)) return false;
      found.insert(inode.ino);
      return true;
    });
    // A file with an upper name may be recorded by a hidden base name.
    std::erase_if(nameless, [&](const Inode* inode) {
      return found.contains(inode->ino) ||
             (tree_.UpperNames(*inode) == 0 ? !inode->IsUnchanged()
                                            : !inode->lost);
    });
    Search(nameless, Names::kAll, [&](Inode& inode, const std::string& path) {
      if (!IsThere(inode, path)) return false;
      if (tree_.UpperNames(inode) != 0) {
        NoteUnlessContested(inode, path);
        return true;
      }
      const Slot* slot = tree_.SlotAt(path);
      const bool deleted =
          slot != nullptr && slot->upper.kind == DentryKind::kWhiteout;
      if (deleted) found_.gone.push_back({inode.ino, path});
      return deleted;
    });
  }

  [[nodiscard]] LookedFor TakeFound() {
    found_.shown = TakeShown();
    return std::move(found_);
  }

  void NoteHeld() {
    std::vector<Inode*> nameless;
    tree_.ForEachUpper([&](Inode& inode) {
      const bool held = HadSeveral(inode) && !inode.lost && inode.lookups != 0;
      if (held && inode.links.empty() && !tree_.VisiblePath(inode)) {
        nameless.push_back(&inode);
      }
    });
    ShowElsewhere(nameless);
  }

  /// Finds a name for each of the files in the base that the overlay can show.
  void ShowElsewhere(const std::vector<Inode*>& nameless) {
    Search(nameless, Names::kShown, [&](Inode& inode, const std::string& path) {
      return ShowAt(inode, path);
    });
  }

  /// The names that became visible.
  [[nodiscard]] std::vector<StaleCaches::Name> TakeShown() {
    return std::move(shown_);
  }

  void NoteBelow(const std::vector<std::string>& paths) {
    if (paths.empty()) return;
    std::set<uint64_t> wanted;
    tree_.ForEachUpper([&](Inode& inode) {
      const bool may_have_more =
          HadSeveral(inode) &&
          tree_.KnownBasePaths(inode).size() < inode.record.base->nlink;
      if (may_have_more) wanted.insert(inode.record.base->ino);
    });
    if (wanted.empty()) return;
    for (const std::string& path : paths) NoteBelow(Find(path), wanted);
  }

 private:
  /// The inode and the base path at a path of the overlay.
  struct Place {
    Inode* inode = nullptr;           ///< null: nothing, or not known
    std::optional<std::string> base;  ///< its path there
  };

  /// Looks at the recorded path and at the other known names. Returns false if
  /// the base must be searched.
  bool LookAt(Inode& inode) {
    const auto st = base_.Stat(inode.record.base->path);
    if (!st && !IsGone(st.error())) return true;
    if (st && tree_.IsOrigin(inode, *st)) {
      const bool sought = inode.sought;
      SetLost(inode, false);
      // The kernel may have content from before a patch by another process.
      const bool patched =
          inode.attr().base_limit != 0 &&
          tree_.OriginOf(inode.record.base->path, *st) != *inode.record.base;
      if (patched) found_.stale.push_back(inode.ino);
      // The transaction hides the recorded path, and the base has no other
      // known name.
      const bool vanished = HadSeveral(inode) && !inode.links.empty() &&
                            tree_.SlotAt(inode.record.base->path) != nullptr &&
                            tree_.UpperNames(inode) == 0 &&
                            !FindName(inode, true) &&
                            (inode.IsUnchanged() || !FindName(inode, false));
      if (vanished) {
        inode.sought = sought;
        return sought;
      }
      if (inode.IsUnchanged()) return true;
      // Another object at another known name is a conflict.
      auto contested = FindName(inode, false);
      if (contested) NoteBy(inode, std::move(*contested));
      return true;
    }
    // An unchanged file is no change of the transaction.
    if (tree_.IsAsItWas(inode)) return true;
    auto known = FindName(inode, true);
    if (!known) {
      SetLost(inode, true);
      return !HadSeveral(inode) || inode.sought;
    }
    st ? SetLost(inode, false) : NoteBy(inode, std::move(*known));
    return true;
  }

  /// Whether `inode` is a file of base origin, not deleted, that had several
  /// hard links.
  static bool HadSeveral(const Inode& inode) {
    return !inode.IsDirectory() && !inode.IsOrphan() && inode.record.base &&
           inode.record.base->nlink > 1;
  }

  Place PlaceOf(Ino ino) const {
    Place place{.inode = tree_.Find(ino), .base = {}};
    if (place.inode != nullptr && place.inode->record.base) {
      place.base = place.inode->record.base->path;
    }
    return place;
  }

  Place Below(const Place& directory, const std::string& name) const {
    const Slot* upper =
        directory.inode == nullptr ? nullptr : directory.inode->UpperSlot(name);
    if (upper != nullptr) return PlaceOf(upper->upper.ino);
    if (!directory.base) return {};
    std::string path = JoinPath(*directory.base, name);
    Inode* known = tree_.FindBaseDirectory(path);
    return {.inode = known, .base = std::move(path)};
  }

  Place Find(std::string_view path) const {
    Place place = PlaceOf(kRootIno);
    while (!path.empty()) {
      const std::string_view name = path.substr(0, path.find('/'));
      place = Below(place, std::string(name));
      path.remove_prefix(std::min(path.size(), name.size() + 1));
    }
    return place;
  }

  /// Enters the names below `place` of the files in `wanted`.
  void NoteBelow(const Place& place, const std::set<uint64_t>& wanted) const {
    if (place.inode != nullptr && !place.inode->IsDirectory()) return;
    if (place.base) NoteBaseBelow(place, wanted);
    if (place.inode == nullptr) return;
    std::vector<Ino> moved_here;
    for (const auto& [name, slot] : place.inode->names->slots) {
      if (slot.upper.kind == DentryKind::kInode) {
        moved_here.push_back(slot.upper.ino);
      }
    }
    for (const Ino ino : moved_here) NoteBelow(PlaceOf(ino), wanted);
  }

  void NoteBaseBelow(const Place& place,
                     const std::set<uint64_t>& wanted) const {
    const auto st = base_.Stat(*place.base);
    if (!st) return;
    if (!S_ISDIR(st->st_mode)) return NoteName(*place.base, wanted);
    // The name may belong to another directory now.
    if (place.inode != nullptr && !tree_.IsOrigin(*place.inode, *st)) return;
    const auto entries = base_.List(*place.base);
    if (!entries) return;
    for (const BaseEntry& entry : *entries) {
      const bool hidden = place.inode != nullptr &&
                          place.inode->UpperSlot(entry.name) != nullptr;
      if (hidden) continue;
      if (entry.type == FileType::kDirectory) {
        NoteBelow(Below(place, entry.name), wanted);
      } else if (wanted.contains(entry.ino)) {
        NoteName(JoinPath(*place.base, entry.name), wanted);
      }
    }
  }

  void NoteName(const std::string& path,
                const std::set<uint64_t>& wanted) const {
    const auto st = base_.Stat(path);
    const bool is_known = st && wanted.contains(st->st_ino) &&
                          tree_.FindBaseFile(path, *st) != nullptr;
    if (!is_known) return;
    Inode* directory = ObtainShown(std::string(ParentPath(path)));
    const bool is_new =
        directory != nullptr && !directory->Knows(BaseName(path));
    if (is_new) Adopt(*directory, path);
  }

  void SetLost(Inode& inode, bool lost) {
    Tree::SetLost(inode, lost, found_.stale);
  }

  void NoteBy(Inode& inode, std::string path) {
    SetLost(inode, false);
    std::swap(inode.record.base->path, path);
    found_.noted.push_back({inode.ino, std::move(path)});
  }

  /// A known base name of a file with several hard links: one that leads to the
  /// file (`leads`), or one that leads to another object.
  std::optional<std::string> FindName(const Inode& inode, bool leads) const {
    if (!HadSeveral(inode)) return {};
    for (const Inode::Link& link : inode.links) {
      auto path = tree_.BasePathOf(link);
      const auto st = path ? base_.Stat(*path) : Fail(ENOENT, "");
      if (st && tree_.IsOrigin(inode, *st) == leads) return path;
    }
    return {};
  }

  enum class Names { kShown, kAll };
  using Take = std::function<bool(Inode&, const std::string& path)>;
  /// Walks the base for names of `files`, all or only those that the
  /// transaction does not hide, until `take` has accepted one for each file.
  void Search(const std::vector<Inode*>& files, Names which, const Take& take) {
    if (files.empty()) return;
    const auto mounts = BaseMounts::Read(base_);
    if (!mounts) return;
    using Wanted = std::map<uint64_t, std::vector<Inode*>>;  // by st_ino
    std::map<std::string, Wanted> by_mount;
    for (Inode* inode : files) {
      const BaseOrigin& origin = *inode->record.base;
      by_mount[mounts->Of(origin.path)][origin.ino].push_back(inode);
    }
    std::set<std::string> except;
    if (which == Names::kShown) except = HiddenNames();
    for (auto& [mount, wanted] : by_mount) {
      std::set<uint64_t> inos;
      for (const auto& [ino, inodes] : wanted) inos.insert(ino);
      WalkNames(base_, *mounts, mount, inos, except,
                [&](uint64_t ino, const std::string& path) {
                  std::vector<Inode*>& inodes = wanted.at(ino);
                  std::erase_if(
                      inodes, [&](Inode* inode) { return take(*inode, path); });
                  if (inodes.empty()) inos.erase(ino);
                  return !inos.empty();
                });
    }
  }

  /// Makes `path` the recorded path unless another object is at the recorded
  /// path. Returns whether it did.
  bool NoteUnlessContested(Inode& inode, const std::string& path) {
    const auto st = base_.Stat(inode.record.base->path);
    const bool is_gone = !st && IsGone(st.error());
    is_gone ? NoteBy(inode, path) : SetLost(inode, false);
    return is_gone;
  }

  /// Shows the inode at `path` and returns whether it could. The recorded path
  /// changes unless another object is there.
  [[nodiscard]] bool NoteAt(Inode& inode, const std::string& path) {
    if (!IsThere(inode, path)) return false;
    Inode* directory = ObtainShown(std::string(ParentPath(path)));
    // A held inode keeps its name; ShowAt then fails.
    const bool shown = directory != nullptr &&
                       directory->UpperSlot(BaseName(path)) == nullptr &&
                       tree_.ShowAt(*directory, BaseName(path), inode);
    if (!shown) return false;
    shown_.push_back({directory->ino, std::string(BaseName(path))});
    if (NoteUnlessContested(inode, path)) return true;
    const std::string noted = inode.record.base->path;
    Inode* contested = ObtainShown(std::string(ParentPath(noted)));
    const bool hides = contested != nullptr && !inode.IsUnchanged() &&
                       contested->UpperSlot(BaseName(noted)) == nullptr;
    if (hides) std::ignore = tree_.ShowAt(*contested, BaseName(noted), inode);
    return true;
  }

  /// Shows the inode at `path` and returns whether it could. The journal keeps
  /// the recorded path of an upper inode.
  [[nodiscard]] bool ShowAt(Inode& inode, const std::string& path) {
    if (!IsUnchangedAt(inode, path)) return false;
    Inode* directory = ObtainShown(std::string(ParentPath(path)));
    if (directory == nullptr || directory->lost) return false;
    if (directory->Knows(BaseName(path))) {
      return directory->CachedChild(BaseName(path)) == &inode;
    }
    std::string& origin = inode.record.base->path;
    const std::string before = std::exchange(origin, path);
    const bool shown = Adopt(*directory, path) == &inode;
    if (inode.upper || !shown) origin = before;
    if (shown) shown_.push_back({directory->ino, std::string(BaseName(path))});
    return shown;
  }

  /// Whether `path` leads to the base file of `inode`. With several hard links
  /// its state does not matter. With one, the file must be unchanged or born
  /// before the recorded ctime.
  [[nodiscard]] bool IsThere(const Inode& inode,
                             const std::string& path) const {
    const auto st = base_.Stat(path);
    if (!st || !tree_.IsOrigin(inode, *st)) return false;
    if (st->st_nlink > 1 || IsUnchangedAt(inode, path)) return true;
    const auto fd = S_ISREG(st->st_mode) ? base_.OpenFile(path)
                                         : Result<SharedFd>(SharedFd());
    return fd && *fd && IsBornBefore((*fd)->get(), inode.record.base->ctime);
  }

  /// Compares size and mtime, because another file may have reused the inode
  /// number.
  [[nodiscard]] bool IsUnchangedAt(const Inode& inode,
                                   const std::string& path) const {
    const BaseOrigin& origin = *inode.record.base;
    const auto st = base_.Stat(path);
    return st && tree_.IsOrigin(inode, *st) &&
           static_cast<uint64_t>(st->st_size) == origin.size &&
           Timestamp::From(st->st_mtim) == origin.mtime;
  }

  /// The base directory `path`, or null if the transaction hides it.
  Inode* Obtain(const std::string& path) const {
    if (path.empty()) return &tree_.root();
    if (Inode* known = tree_.FindBaseDirectory(path)) return known;
    Inode* parent = Obtain(std::string(ParentPath(path)));
    return parent == nullptr ? nullptr : Adopt(*parent, path);
  }

  /// The base directory `path`, or null if the overlay does not show it.
  Inode* ObtainShown(const std::string& path) const {
    Inode* directory = Obtain(path);
    const bool shown =
        directory != nullptr && tree_.VisiblePath(*directory).has_value();
    return shown ? directory : nullptr;
  }

  Inode* Adopt(Inode& parent, const std::string& path) const {
    if (parent.UpperSlot(BaseName(path)) != nullptr) return nullptr;
    const auto object = FindObject(base_, path);
    if (!object || !*object) return nullptr;
    if (tree_.IsOursAt(parent, BaseName(path), (*object)->st)) return nullptr;
    return &tree_.AdoptBase(parent, BaseName(path), **object);
  }

  /// The base names that the transaction deleted or replaced.
  std::set<std::string> HiddenNames() const {
    std::set<std::string> hidden;
    tree_.ForEachUpper([&](const Inode& inode) {
      if (!inode.IsDirectory() || !inode.record.base) return;
      for (const auto& [name, slot] : inode.names->slots) {
        if (slot.IsUpper()) {
          hidden.insert(JoinPath(inode.record.base->path, name));
        }
      }
    });
    return hidden;
  }

  Tree& tree_;
  const BaseDirectory& base_;
  std::vector<StaleCaches::Name> shown_;
  LookedFor found_;
};

}  // namespace

LookedFor LookForChanged(Tree& tree, const BaseDirectory& base,
                         const std::vector<Inode*>& changed) {
  OtherNames names(tree, base);
  names.LookForChanged(changed);
  return names.TakeFound();
}

std::vector<StaleCaches::Name> NoteNamesOfHeld(Tree& tree,
                                               const BaseDirectory& base) {
  OtherNames names(tree, base);
  names.NoteHeld();
  return names.TakeShown();
}

std::vector<StaleCaches::Name> ShowElsewhere(Tree& tree,
                                             const BaseDirectory& base,
                                             const std::vector<Inode*>& files) {
  OtherNames names(tree, base);
  names.ShowElsewhere(files);
  return names.TakeShown();
}

void NoteNamesBelow(Tree& tree, const BaseDirectory& base,
                    const std::vector<std::string>& paths) {
  OtherNames(tree, base).NoteBelow(paths);
}

}  // namespace txfs
