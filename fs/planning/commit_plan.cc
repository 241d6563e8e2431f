#include "fs/planning/commit_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>
#include <unordered_map>

#include "fs/base/base_mounts.h"
#include "fs/base/link_search.h"
#include "fs/base/owner_access.h"
#include "fs/planning/ownership.h"
#include "fs/tree/own_names.h"
#include "fs/tree/own_xattrs.h"
#include "fs/vault/vaults.h"

namespace txfs {
namespace {

/// A base file with few changed bytes is patched in place from here on, bytes.
constexpr uint64_t kPatchFrom = 64 << 20;
/// What no commit adds to the mode of a file.
constexpr uint32_t kPrivileges = S_ISUID | S_ISGID;
/// Deeper directories are staged by themselves, not within their parent.
constexpr size_t kStagedPathMax = 1000;
/// Of a name in a vault, with room to spare.
constexpr size_t kSlotLength = 24;

bool IsDevice(const Inode& inode) {
  return inode.attr().type == FileType::kCharDevice ||
         inode.attr().type == FileType::kBlockDevice;
}

size_t Depth(const std::string& path) {
  return static_cast<size_t>(std::ranges::count(path, '/'));
}

/// Where a name of an inode is in the overlay.
struct Place {
  Ino parent;
  std::string name;
  std::string path;
};

/// A base file: mount and st_ino.
using FileKey = std::pair<std::string, uint64_t>;

/// A base file of several names, of which some come or go.
struct SharedFile {
  const Inode* inode = nullptr;                      ///< if it is in memory
  std::vector<std::pair<std::string, Ino>> removed;  ///< path, directory
  std::vector<Place> fresh;
  std::optional<std::string> stays;  ///< base path of a name that remains
};

/// Plans in phases; each appends to its own list, so that the order of steps
/// is readable in Finish.
class Planner {
 public:
  Planner(Frozen& frozen, const PlanOptions& options, const BaseMounts& mounts)
      : frozen_(frozen),
        options_(options),
        mounts_(mounts),
        ownership_(frozen, options.asks) {
    if (options.selection == nullptr) return;
    counts_ = [this](const Inode& directory, std::string_view name) {
      return IsSelected(directory, std::string(name));
    };
  }

  Result<CommitPlan> Run() {
    frozen_.tree.ForEachUpper([&](Inode& inode) { upper_.push_back(&inode); });
    std::ranges::sort(upper_, {},
                      [](const Inode* inode) { return inode->ino; });
    for (const Inode* inode : upper_) {
      TRY(CheckReach(*inode));
      TRY(CheckOwnNames(*inode));
      if (IsSelected(*inode)) TRY(CheckMount(*inode));
    }
    for (const Inode* inode : upper_) {
      if (inode->IsDirectory()) TRY(PlanNames(*inode));
    }
    for (const Inode* inode : upper_) {
      if (!inode->record.base) TRY(PlanNew(*inode));
    }
    for (const Inode* inode : upper_) {
      if (inode->record.base && IsSelected(*inode)) TRY(PlanBased(*inode));
    }
    TRY(PlanShared());
    for (const Inode* inode : upper_) TRY(PlanAttributes(*inode));
    TRY(KeepDirectoryTimes());
    TRY(KeepAttributesForUndo());
    return Finish();
  }

 private:
  /// Two objects at one path would stop the commit half-way.
  Status CheckReach(const Inode& inode) const {
    if (!frozen_.tree.IsShadowed(inode)) return {};
    const std::string& path = inode.record.base->path;
    return Fail(0, "the transaction has two versions of " + path,
                "run `txfs discard` on that path, then commit again");
  }

  /// No mount makes them, but what is loaded from a journal may have them.
  Status CheckOwnNames(const Inode& inode) const {
    std::string path;
    for (const auto& [name, slot] : inode.names->slots) {
      const bool is_own = slot.IsUpper() && IsSelected(inode, name) &&
                          own_names_.IsOwn(inode, name);
      if (is_own) path = frozen_.tree.PathOf(inode, name);
    }
    // What is new below one of the base's changes that directory.
    const bool is_changed = inode.record.base && IsSelected(inode) &&
                            own_names_.IsInBase(inode.record.base->path) &&
                            !frozen_.tree.IsAsItWas(inode);
    if (path.empty() && is_changed) path = inode.record.base->path;
    if (path.empty()) return {};
    return Fail(EPERM, "cannot commit " + path + ": " + OwnNamesRule().reason,
                "run `txfs discard` on that path, then commit again");
  }

  // --- selection

  [[nodiscard]] bool IsSelected(const Inode& inode) const {
    return options_.selection == nullptr ||
           options_.selection->inodes.contains(inode.ino);
  }
  [[nodiscard]] bool IsSelected(const Inode& directory,
                                const std::string& name) const {
    return options_.selection == nullptr ||
           options_.selection->names.contains({directory.ino, name});
  }

  // --- paths after the commit

  /// Where `inode` is once the selected names are committed, and no others.
  [[nodiscard]] std::optional<std::string> PathOf(const Inode& inode) const {
    return frozen_.tree.VisiblePath(inode, counts_, &paths_);
  }
  /// The same of base name `path`; none when it goes.
  [[nodiscard]] std::optional<std::string> PathOfBase(
      const std::string& path) const {
    return frozen_.tree.VisibleBase(path, counts_);
  }

  // --- names

  /// Where upper inodes are, and base objects whose name goes away: moved to
  /// the vault, unless a whole directory takes them along.
  Status PlanNames(const Inode& directory) {
    const auto visible = PathOf(directory);
    for (const auto& [name, slot] : directory.names->slots) {
      if (!slot.IsUpper()) continue;
      if (!IsSelected(directory, name)) continue;
      TRY(CheckMount(directory));
      const Inode* child = slot.upper.kind == DentryKind::kInode
                               ? frozen_.tree.Find(slot.upper.ino)
                               : nullptr;
      const Place place{directory.ino, name,
                        JoinPath(visible.value_or(""), name)};
      if (child != nullptr && visible) places_[child->ino].push_back(place);
      if (directory.record.base) TRY(PlanBaseName(directory, place, child));
    }
    return {};
  }

  Status PlanBaseName(const Inode& directory, const Place& place,
                      const Inode* child) {
    const std::string path = JoinPath(directory.record.base->path, place.name);
    const auto st = frozen_.base.Stat(path);
    if (!st && st.error().code == ENOENT) return {};
    if (!st) return std::unexpected(st.error());
    const Inode* object = S_ISDIR(st->st_mode)
                              ? frozen_.tree.FindBaseDirectory(path)
                              : frozen_.tree.FindBaseFile(path, *st);
    if (object != nullptr && object == child) {
      kept_[child->ino].push_back(place.path);  // renamed away and back
      came_back_[path] = place.path;
      return {};
    }
    const auto mount = mounts_.AtOrBelow(path);
    if (S_ISDIR(st->st_mode) && mount) return RefuseMountpoint(path, *mount);
    Touch(directory);
    if (!S_ISDIR(st->st_mode) && st->st_nlink > 1) {
      SharedFile& file = shared_[{mounts_.Of(path), st->st_ino}];
      if (object != nullptr) file.inode = object;
      file.removed.emplace_back(path, directory.ino);
      return {};
    }
    const bool moves = object != nullptr && !object->IsOrphan();
    // A directory that goes takes its content along.
    if (!moves && directory.IsOrphan()) return {};
    const std::string slot =
        moves ? SlotName(VaultSlot::kMoving, Raw(object->ino))
              : SlotName(VaultSlot::kTaken, detaches_.size());
    if (moves) moved_.insert(object->ino);
    if (!moves && S_ISDIR(st->st_mode)) lost_.insert(path);
    Spot to = InVault(slot, path);
    const bool leaves = moves && object->links.front().parent != directory.ino;
    if (!leaves && IsBound(path, *st)) {
      const std::string name = BesideName(
          moves ? VaultSlot::kMoving : VaultSlot::kTaken, st->st_ino);
      if (moves) beside_.emplace(object->ino, name);
      to = Spot::Base(JoinPath(ParentPath(path), name));
    }
    Add(detaches_, {.kind = StepKind::kMove,
                    .from = Spot::Base(path),
                    .to = std::move(to),
                    .ino = st->st_ino});
    return {};
  }

  /// Whether the kernel lets this user rename the base directory at `path`
  /// within its parent only: a move elsewhere writes to the directory, which
  /// belongs to another user.
  [[nodiscard]] bool IsBound(const std::string& path,
                             const struct stat& st) const {
    if (!S_ISDIR(st.st_mode) || ::geteuid() == 0) return false;
    const auto dir = frozen_.base.OpenDirectory(std::string(ParentPath(path)));
    return dir && !MayWrite((*dir)->get(), std::string(BaseName(path)));
  }

  // --- filesystems mounted in the base

  /// The vault on the filesystem of `path`.
  [[nodiscard]] Spot InVault(std::string slot, const std::string& path) const {
    return Spot::Vault(std::move(slot), mounts_.Of(path));
  }

  [[nodiscard]] Status CheckMount(const Inode& inode) const {
    if (!inode.record.base || inode.record.base->dev == 0) return {};
    const std::string& path = inode.record.base->path;
    if (!mounts_.Of(path).empty()) return {};
    return Fail(EXDEV,
                "cannot commit " + path +
                    ": its filesystem is not mounted in the workspace",
                "mount it again in the daemon's mount namespace; a btrfs "
                "subvolume needs `mount --bind` onto itself");
  }

  static Status RefuseMountpoint(const std::string& path,
                                 const std::string& mount) {
    return Fail(EXDEV,
                "cannot commit the move or deletion of " + path +
                    ": a filesystem is mounted at " + mount,
                "unmount it, or put the directory back");
  }

  static Status RefuseCrossing(const std::string& from,
                               const std::string& path) {
    return Fail(EXDEV,
                "cannot commit " + path + ": " + from +
                    " is on another filesystem, and a commit copies only "
                    "files with a single name from there",
                "copy it there instead, and remove the old one");
  }

  /// Links do not lead from one filesystem to another.
  [[nodiscard]] Status CheckLinks(const std::string& from,
                                  const std::vector<Place>& places) const {
    for (const Place& place : places) {
      if (mounts_.Of(place.path) != mounts_.Of(from)) {
        return RefuseCrossing(from, place.path);
      }
    }
    return {};
  }

  // --- new inodes

  Status PlanNew(const Inode& inode) {
    if (inode.IsOrphan()) return {};
    const auto& places = places_[inode.ino];
    if (places.empty()) return {};
    if (IsDevice(inode)) {
      for (const Place& place : places) {
        plan_.withheld.push_back("device node not committed: " + place.path);
      }
      return {};
    }
    if (RidesInParent(inode)) return {};
    const std::string stage = SlotName(VaultSlot::kStaged, Raw(inode.ino));
    StageTree(inode, InVault(stage, places.front().path));
    return Attach(inode, stage, places);
  }

  /// The new directory that holds the only name of a new object.
  const Inode* NewParent(const Inode& inode) {
    const auto& places = places_[inode.ino];
    if (places.size() != 1 || inode.record.base || IsDevice(inode)) {
      return nullptr;
    }
    const Inode* parent = frozen_.tree.Find(places.front().parent);
    return parent != nullptr && !parent->record.base ? parent : nullptr;
  }

  /// How long the path of a new object is in the vault. A deep tree is staged
  /// in pieces, so that no path there is long and the base sees few moves.
  size_t StagedLength(const Inode& inode) {
    std::vector<const Inode*> chain{&inode};
    while (!staged_lengths_.contains(chain.back()->ino)) {
      const Inode* parent = NewParent(*chain.back());
      if (parent == nullptr) {
        staged_lengths_[chain.back()->ino] = kSlotLength;
        break;
      }
      chain.push_back(parent);
    }
    size_t length = staged_lengths_[chain.back()->ino];
    chain.pop_back();
    for (const Inode* at : chain | std::views::reverse) {
      const size_t below = length + 1 + places_[at->ino].front().name.size();
      const bool fits = below < kStagedPathMax || !at->IsDirectory();
      length = fits ? below : kSlotLength;
      staged_lengths_[at->ino] = length;
    }
    return length;
  }

  /// A new object whose only name is in a new directory is staged in place.
  bool RidesInParent(const Inode& inode) {
    return NewParent(inode) != nullptr && StagedLength(inode) > kSlotLength;
  }

  /// Whether the file may be what the spool has as its own segment. In a new
  /// directory an ordinary user could not set its attributes afterwards.
  [[nodiscard]] bool AdoptsSegment(const Inode& inode, const Spot& spot) const {
    const bool reachable =
        ::geteuid() == 0 || spot.path.find('/') == std::string::npos;
    // A transaction that goes on needs its journal as it is.
    return options_.selection == nullptr && !inode.record.base &&
           inode.attr().own_segment != 0 && reachable;
  }

  void StageTree(const Inode& inode, const Spot& spot) {
    staged_.insert(inode.ino);
    std::string nest = ownership_.FindNest(inode);
    const bool adopts = nest.empty() && AdoptsSegment(inode, spot);
    if (adopts) adopting_.insert(inode.ino);
    if (!nest.empty()) nests_[inode.ino] = nest;
    plan_.staged.push_back({spot, inode.ino, adopts, std::move(nest)});
    std::map<std::string, const Inode*> children;  // their order is repeatable
    frozen_.tree.ForEachChild(inode, [&](const auto& name, const auto& child) {
      if (RidesInParent(child)) children.emplace(name, &child);
    });
    for (const auto& [name, child] : children) {
      StageTree(*child, Spot::Vault(JoinPath(spot.path, name), spot.mount));
    }
  }

  /// Brings a staged or detached object to its first place, and links it to
  /// the others.
  Status Attach(const Inode& inode, const std::string& slot,
                const std::vector<Place>& places) {
    const uint64_t ino = inode.record.base ? inode.record.base->ino : 0;
    const std::string& path = places.front().path;
    const auto beside = beside_.find(inode.ino);
    Spot from = beside == beside_.end()
                    ? InVault(slot, path)
                    : Spot::Base(JoinPath(ParentPath(path), beside->second));
    Add(attaches_,
        {.kind = StepKind::kMove,
         .from = std::move(from),
         .to = Spot::Base(path),
         .ino = ino},
        inode);
    Touch(places.front().parent);
    return AddLinks(inode, Spot::Base(places.front().path), places, 1);
  }

  Status AddLinks(const Inode& inode, const Spot& from,
                  const std::vector<Place>& places, size_t first) {
    TRY(CheckLinks(from.path, places));
    const uint64_t ino = inode.record.base ? inode.record.base->ino : 0;
    for (size_t i = first; i < places.size(); ++i) {
      Add(links_,
          {.kind = StepKind::kLink,
           .from = from,
           .to = Spot::Base(places[i].path),
           .ino = ino},
          inode, places[i].parent);
      Touch(places[i].parent);
    }
    return {};
  }

  // --- inodes of the base

  /// Where each inode's content comes from and which names it gets.
  Status PlanBased(const Inode& inode) {
    if (inode.IsOrphan() || inode.ino == kRootIno) return {};
    const std::vector<Place> fresh = FreshPlaces(inode);
    if (!inode.IsDirectory() && inode.record.base->nlink > 1) {
      // It keeps its names: changed in place, never replaced.
      if (inode.ContentChanged()) TRY(AddPatch(inode));
      TRY(CheckLinks(inode.record.base->path, fresh));
      if (fresh.empty()) return {};
      SharedFile& file = shared_[KeyOf(inode)];
      file.inode = &inode;
      file.fresh = fresh;
      return {};
    }
    const std::string& base = inode.record.base->path;
    const bool moved = moved_.contains(inode.ino);
    auto place = PathOfBase(base);
    if (kept_.contains(inode.ino)) place = kept_[inode.ino].front();
    if (moved && !fresh.empty()) place = fresh.front().path;
    if (!place || (moved && fresh.empty())) {
      // A file of several names: others took away all those that are left.
      return Fail(0, "the transaction no longer has a name for " + base,
                  "run `txfs discard` on that path");
    }
    const bool crosses = mounts_.Of(*place) != mounts_.Of(base);
    if (crosses && (!moved || inode.IsDirectory() || IsDevice(inode))) {
      return RefuseCrossing(base, *place);
    }
    const bool changed = inode.ContentChanged();
    const bool replaced = crosses || (changed && IsReplaced(inode));
    if (changed && !replaced) TRY(AddPatch(inode));
    const std::string fresh_slot = SlotName(VaultSlot::kStaged, Raw(inode.ino));
    if (replaced) StageTree(inode, InVault(fresh_slot, *place));
    if (moved) {
      // A replaced one's old content stays in the vault.
      return Attach(
          inode,
          replaced ? fresh_slot : SlotName(VaultSlot::kMoving, Raw(inode.ino)),
          fresh);
    }
    if (replaced) {
      Add(exchanges_,
          {.kind = StepKind::kExchange,
           .from = InVault(fresh_slot, *place),
           .to = Spot::Base(*place),
           .other = inode.record.base->ino},
          inode);
      TouchBase(std::string(ParentPath(base)));
    }
    return AddLinks(inode, Spot::Base(*place), fresh, 0);
  }

  /// Names the inode has in the overlay but not in the base.
  std::vector<Place> FreshPlaces(const Inode& inode) {
    std::vector<Place> fresh = places_[inode.ino];
    const auto kept = kept_.find(inode.ino);
    if (kept == kept_.end()) return fresh;
    std::erase_if(fresh, [&](const Place& place) {
      return std::ranges::find(kept->second, place.path) != kept->second.end();
    });
    return fresh;
  }

  /// Whether a new file takes the old one's place, or the old one is written
  /// to: when it is large and little of it changed, or the new one could not
  /// have its owner, its group or its name.
  [[nodiscard]] bool IsReplaced(const Inode& inode) const {
    if (!ownership_.MayReplace(*inode.record.base)) return false;
    // The vault is on the filesystem of the workspace's root.
    const bool clones = options_.clones && inode.record.base->dev == 0;
    if (clones || inode.attr().size < kPatchFrom) return true;
    return inode.own->stored_bytes > inode.attr().size / 2 ||
           inode.attr().base_limit < inode.record.base->size / 2;
  }

  Status AddPatch(const Inode& inode) {
    const BaseOrigin& base = *inode.record.base;
    Delta after{.name = SlotName(VaultSlot::kPatch, Raw(inode.ino)),
                .keep = std::min(inode.attr().base_limit, inode.attr().size),
                .size = inode.attr().size};
    for (const auto& [offset, extent] : inode.extents) {
      const uint64_t end = std::min(extent.end(), after.size);
      if (offset < end) after.ranges.push_back({offset, end});
    }
    Delta before{.name = SlotName(VaultSlot::kPatched, Raw(inode.ino)),
                 .keep = base.size,
                 .size = base.size};
    const uint64_t cut = std::min(after.keep, base.size);
    for (const Range& range : after.ranges) {
      const uint64_t end = std::min(range.to, cut);
      if (range.from < end) before.ranges.push_back({range.from, end});
    }
    if (cut < base.size) before.ranges.push_back({cut, base.size});
    plan_.deltas.push_back({.delta = after, .ino = inode.ino});
    plan_.deltas.push_back({.delta = before, .base = inode.ino});
    patched_.insert(inode.ino);
    CommitStep step{
        .kind = StepKind::kPatch, .to = Spot::Base(base.path), .ino = base.ino};
    step.before = std::move(before);
    step.after = std::move(after);
    Add(patches_, std::move(step));
    return {};
  }

  // --- files of several names

  /// A name in the vault holds such a file while its names come and go.
  Status PlanShared() {
    std::map<std::string, std::set<uint64_t>> unknown;  // by mount
    for (auto& [key, file] : shared_) {
      file.stays = NameThatStays(key, file);
      if (file.stays || !file.fresh.empty()) continue;
      unknown[key.first].insert(key.second);
    }
    for (const auto& [mount, inos] : unknown) {
      for (auto& [ino, path] :
           FindOtherNames(frozen_.base, mounts_, mount, inos, RemovedPaths())) {
        shared_[{mount, ino}].stays = path;
      }
    }
    for (auto& [key, file] : shared_) PlanShared(key, file);
    return {};
  }

  [[nodiscard]] FileKey KeyOf(const Inode& inode) const {
    return {mounts_.Of(inode.record.base->path), inode.record.base->ino};
  }

  std::set<std::string> RemovedPaths() {
    std::set<std::string> paths;
    for (const auto& [key, file] : shared_) {
      for (const auto& [path, directory] : file.removed) paths.insert(path);
    }
    return paths;
  }

  /// Where a base name is that stays; none when the overlay hides it.
  std::optional<std::string> PlaceOf(const std::string& base) const {
    const auto found = came_back_.find(base);
    if (found != came_back_.end()) return found->second;
    return PathOfBase(base);
  }

  /// A base name of the file that nothing takes away, if one is known.
  std::optional<std::string> NameThatStays(const FileKey& key,
                                           const SharedFile& file) {
    const Inode* inode = file.inode;
    if (inode == nullptr) return std::nullopt;
    std::vector<std::string> known{inode->record.base->path};
    for (const Inode::Link& link : inode->links) {
      const Inode* parent = frozen_.tree.Find(link.parent);
      if (parent == nullptr || !parent->record.base) continue;
      known.push_back(JoinPath(parent->record.base->path, link.name));
    }
    for (const std::string& path : known) {
      const bool removed = std::ranges::any_of(
          file.removed, [&](const auto& name) { return name.first == path; });
      const auto st = frozen_.base.Stat(path);
      if (!removed && st && FileKey(mounts_.Of(path), st->st_ino) == key &&
          PlaceOf(path)) {
        return path;
      }
    }
    return std::nullopt;
  }

  /// Whether the kernel lets this user make hard links of the file.
  [[nodiscard]] bool MayLinkAt(const std::string& path) const {
    const auto parent =
        frozen_.base.OpenDirectory(std::string(ParentPath(path)));
    return !parent || MayLink((*parent)->get(), std::string(BaseName(path)));
  }

  /// For a file of which this user may rename the names, and make no others.
  /// Each step names its directory, because several names lead to the file.
  void MoveNames(const FileKey& key, const SharedFile& file) {
    for (size_t i = 0; i < file.removed.size(); ++i) {
      const auto& [path, directory] = file.removed[i];
      const bool moves = i < file.fresh.size();
      const std::string slot =
          moves ? SlotName(VaultSlot::kMoving, Raw(file.inode->ino))
                : SlotName(VaultSlot::kTaken, detaches_.size());
      Add(detaches_,
          {.kind = StepKind::kMove,
           .from = Spot::Base(path),
           .to = Spot::Vault(slot, key.first),
           .ino = key.second},
          nullptr, directory);
      if (!moves) continue;
      const Place& place = file.fresh[i];
      Add(attaches_,
          {.kind = StepKind::kMove,
           .from = Spot::Vault(slot, key.first),
           .to = Spot::Base(place.path),
           .ino = key.second},
          nullptr, place.parent);
      Touch(place.parent);
    }
  }

  void PlanShared(const FileKey& key, const SharedFile& file) {
    const bool moves = !file.removed.empty() && file.fresh.size() <= 1 &&
                       !MayLinkAt(file.removed.front().first);
    if (moves) return MoveNames(key, file);
    const auto& [mount, ino] = key;
    const Spot hold = Spot::Vault(SlotName(VaultSlot::kHeld, ino), mount);
    const std::string source =
        file.removed.empty() ? *file.stays : file.removed.front().first;
    Add(holds_, {.kind = StepKind::kLink,
                 .from = Spot::Base(source),
                 .to = hold,
                 .ino = ino});
    for (const auto& [path, directory] : file.removed) {
      Add(detaches_,
          {.kind = StepKind::kUnlink,
           .from = hold,
           .to = Spot::Base(path),
           .ino = ino},
          nullptr, directory);
    }
    for (const Place& place : file.fresh) {
      Add(links_,
          {.kind = StepKind::kLink,
           .from = hold,
           .to = Spot::Base(place.path),
           .ino = ino},
          nullptr, place.parent);
      Touch(place.parent);
    }
    // As long as it is held its link count is wrong, so not longer than it
    // takes; what has no other name is what undo brings back.
    std::optional<std::string> stays;
    if (file.stays) stays = PlaceOf(*file.stays);
    if (!stays && !file.fresh.empty()) stays = file.fresh.front().path;
    if (!stays) return;
    Add(drops_, {.kind = StepKind::kUnlink,
                 .from = Spot::Base(*stays),
                 .to = hold,
                 .ino = ino});
  }

  // --- attributes

  void Touch(const Inode& directory) { touched_.insert(directory.ino); }
  void Touch(Ino directory) { touched_.insert(directory); }
  void TouchBase(const std::string& path) {
    const Inode* directory = frozen_.tree.FindBaseDirectory(path);
    if (directory != nullptr && directory->upper) {
      Touch(*directory);
    } else {
      untouched_.insert(path);
    }
  }

  Status PlanAttributes(const Inode& inode) {
    const bool touched = touched_.contains(inode.ino);
    if (inode.IsOrphan()) {
      if (touched) lost_.insert(inode.record.base->path);
      return {};
    }
    if (!IsSelected(inode) && !touched) return {};
    if (IsDevice(inode) && !inode.record.base) return {};
    const auto path = PathAfter(inode);
    if (!path) {
      if (patched_.contains(inode.ino)) lost_.insert(inode.record.base->path);
      return {};
    }
    NoteWithheldMode(inode, *path);
    if (IsSelected(inode)) {
      const auto nest = nests_.find(inode.ino);
      ownership_.Note(inode, *path, staged_.contains(inode.ino),
                      nest == nests_.end() ? "" : nest->second);
    }
    const bool adopts = adopting_.contains(inode.ino);
    if (staged_.contains(inode.ino) && !touched && !adopts &&
        !IsDisturbed(inode)) {
      return {};
    }
    CommitStep step{.kind = StepKind::kAttributes, .to = Spot::Base(*path)};
    ObjectAttributes after = CommittedAttributes(inode);
    // A file of the store may have inherited an access control list there.
    if (inode.attr().xattrs_owned || adopts) {
      after.xattrs = OwnXattrs(inode);
    }
    if (inode.record.base && !staged_.contains(inode.ino)) {
      step.from = Spot::Base(inode.record.base->path);
      TRY(SetBefore(inode, after, step));
      const bool same = step.set_before == after;
      if (same && !touched && !IsDisturbed(inode)) return {};
    }
    const bool sets_xattrs =
        after.xattrs && !after.xattrs->empty() &&
        (!step.set_before || step.set_before->xattrs != after.xattrs);
    if (sets_xattrs) {
      plan_.tried.push_back({InVault("xattrs", *path), inode.ino});
    }
    step.set_after = std::move(after);
    if (touched) plan_.touched.insert(inode.ino);
    Add(inode.IsDirectory() ? directories_ : files_, std::move(step), inode);
    return {};
  }

  /// Whether the steps change attributes that the transaction does not.
  [[nodiscard]] bool IsDisturbed(const Inode& inode) const {
    // A new directory may deny its owner what moving it to its place takes.
    const bool denies = (inode.attr().mode & S_IRWXU) != S_IRWXU;
    const bool moves =
        moved_.contains(inode.ino) || (denies && staged_.contains(inode.ino));
    return patched_.contains(inode.ino) || (inode.IsDirectory() && moves);
  }

  /// What the base object has now; and what it keeps in a commit that is only
  /// about names in it.
  Status SetBefore(const Inode& inode, ObjectAttributes& after,
                   CommitStep& step) {
    const std::string& base = inode.record.base->path;
    const struct stat st = TRY(frozen_.base.Stat(base));
    ObjectAttributes before = AttributesOf(st);
    step.ino = st.st_ino;
    if (IsSelected(inode)) {
      TRY(CheckIsOrigin(inode, st));
    } else {
      const ObjectAttributes times = after;
      after = before;
      after.atime = times.atime;
      after.mtime = times.mtime;
    }
    if (after.xattrs) {
      before.xattrs = TRY(frozen_.origins.BaseXattrs(base, st.st_ino));
      after.xattrs = MergeXattrs(inode, *before.xattrs);
    }
    // What somebody took away meanwhile does not come back.
    if (!inode.IsDirectory()) after.mode &= ~kPrivileges | before.mode;
    step.set_before = std::move(before);
    return {};
  }

  /// What somebody put there since conflicts were looked for is not what the
  /// transaction changed.
  [[nodiscard]] Status CheckIsOrigin(const Inode& inode,
                                     const struct stat& st) const {
    if (frozen_.tree.IsOrigin(inode, st)) return {};
    return Fail(EAGAIN,
                inode.record.base->path + " was replaced in the base meanwhile",
                "commit again");
  }

  std::optional<std::string> PathAfter(const Inode& inode) {
    const auto places = places_.find(inode.ino);
    if (places != places_.end() && !places->second.empty()) {
      return places->second.front().path;
    }
    // The name by which it was known may be the one that went.
    if (inode.record.base) {
      const auto shared = shared_.find(KeyOf(inode));
      if (shared != shared_.end() && shared->second.stays) {
        return PlaceOf(*shared->second.stays);
      }
    }
    return PathOf(inode);
  }

  void NoteWithheldMode(const Inode& inode, const std::string& path) {
    if (CommittedMode(inode) == inode.attr().mode) return;
    plan_.withheld.push_back("set-user-ID or set-group-ID not committed: " +
                             path);
  }

  /// Directories of exchanges, of which the transaction changed nothing.
  Status KeepDirectoryTimes() {
    for (const std::string& base : untouched_) {
      const auto place = PathOfBase(base);
      if (!place) continue;
      CommitStep step{.kind = StepKind::kAttributes,
                      .from = Spot::Base(base),
                      .to = Spot::Base(*place)};
      const struct stat st = TRY(frozen_.base.Stat(base));
      step.ino = st.st_ino;
      step.set_before = AttributesOf(st);
      step.set_after = step.set_before;
      Add(directories_, std::move(step));
    }
    return {};
  }

  /// Directories that go, and are changed on their way, and files that are
  /// patched and lose all their names.
  Status KeepAttributesForUndo() {
    for (const std::string& path : lost_) {
      CommitStep step{.kind = StepKind::kAttributes,
                      .from = Spot::Base(path),
                      .to = Spot::Base(path)};
      const struct stat st = TRY(frozen_.base.Stat(path));
      step.ino = st.st_ino;
      step.set_before = AttributesOf(st);
      Add(directories_, std::move(step));
    }
    return {};
  }

  // --- order

  static void Add(std::vector<PlannedStep>& phase, CommitStep step) {
    phase.push_back({std::move(step), kNoIno, kNoIno});
  }
  void Add(std::vector<PlannedStep>& phase, CommitStep step,
           const Inode& object, Ino parent = kNoIno) {
    const Ino staged = staged_.contains(object.ino) ? object.ino : kNoIno;
    phase.push_back({std::move(step), staged, parent});
  }
  static void Add(std::vector<PlannedStep>& phase, CommitStep step,
                  std::nullptr_t, Ino parent) {
    phase.push_back({std::move(step), kNoIno, parent});
  }

  static void SortByDepth(std::vector<PlannedStep>& steps) {
    // Paths may be long: each is gone through once.
    std::vector<std::pair<size_t, PlannedStep>> by_depth;
    for (PlannedStep& planned : steps) {
      const size_t depth = Depth(PathOf(planned.step));
      by_depth.emplace_back(depth, std::move(planned));
    }
    const auto is_before = [](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return PathOf(a.second.step) < PathOf(b.second.step);
    };
    std::ranges::stable_sort(by_depth, is_before);
    steps.clear();
    for (auto& [depth, planned] : by_depth) steps.push_back(std::move(planned));
  }
  static const std::string& PathOf(const CommitStep& step) {
    return step.to.vault ? step.from.path : step.to.path;
  }

  CommitPlan Finish() {
    std::ranges::move(ownership_.Withheld(),
                      std::back_inserter(plan_.withheld));
    // Within one depth the order does not matter, but let it be one.
    SortByDepth(detaches_);
    std::ranges::reverse(detaches_);
    SortByDepth(attaches_);
    SortByDepth(directories_);
    std::ranges::reverse(directories_);
    for (auto* phase : {&patches_, &holds_, &detaches_, &attaches_, &exchanges_,
                        &links_, &drops_, &files_, &directories_}) {
      std::ranges::move(*phase, std::back_inserter(plan_.steps));
    }
    for (const PlannedStep& planned : plan_.steps) {
      for (const Spot& spot : {planned.step.from, planned.step.to}) {
        const std::string mount =
            spot.vault ? spot.mount : mounts_.Of(spot.path);
        if (!mount.empty()) plan_.mounts.insert(mount);
      }
    }
    return std::move(plan_);
  }

  Frozen& frozen_;
  const PlanOptions options_;
  const BaseMounts& mounts_;
  Ownership ownership_;
  std::map<Ino, std::string> nests_;  // of staged inodes
  const OwnNames own_names_{frozen_.tree, frozen_.base};
  Tree::Counts counts_;
  mutable PathMemo paths_;
  /// Of new inodes: the length of the path in the vault.
  std::unordered_map<Ino, size_t> staged_lengths_;
  CommitPlan plan_;
  std::vector<const Inode*> upper_;
  std::map<Ino, std::vector<Place>> places_;      // of selected names
  std::map<Ino, std::vector<std::string>> kept_;  // of those, in the base, too
  std::map<std::string, std::string> came_back_;  // the same by base path
  std::map<FileKey, SharedFile> shared_;
  std::set<Ino> staged_, adopting_, moved_, patched_;
  /// BesideNames of moved directories that may not leave their parent.
  std::map<Ino, std::string> beside_;
  std::set<Ino> touched_;            // directories in which steps happen
  std::set<std::string> untouched_;  // base directories of exchanges
  std::set<std::string> lost_;       // base objects without a place
  std::vector<PlannedStep> patches_, holds_, detaches_, attaches_, exchanges_,
      links_, drops_, files_, directories_;
};

}  // namespace

uint32_t CommittedMode(const Inode& inode) {
  const uint32_t mode = inode.attr().mode;
  if (inode.IsDirectory()) return mode;
  const uint32_t had = inode.record.base ? inode.record.base->mode : 0;
  return mode & (~kPrivileges | had);
}

ObjectAttributes CommittedAttributes(const Inode& inode) {
  const Attr& attr = inode.attr();
  return {.type = attr.type,
          .mode = CommittedMode(inode),
          .uid = attr.uid,
          .gid = attr.gid,
          .atime = attr.atime,
          .mtime = attr.mtime};
}

Result<CommitPlan> PlanCommit(Frozen& frozen, const PlanOptions& options) {
  const BaseMounts mounts = TRY(BaseMounts::Read(frozen.base));
  return Planner(frozen, options, mounts).Run();
}

}  // namespace txfs
