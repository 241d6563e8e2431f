#include "fs/diff/commit_view.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "fs/commit/committer.h"
#include "fs/diff/change_list.h"
#include "fs/diff/step_tracer.h"
#include "fs/tree/tree.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// The directories of a commit's vault, by mount.
using VaultDirectories = std::map<std::string, BaseDirectory>;

/// Makes net changes of what a plan did, by what base and vault have now.
class ViewBuilder {
 public:
  ViewBuilder(const BaseDirectory& base, const Vaults& vaults,
              const VaultDirectories& vault, std::string vault_id,
              const CommitImage& image)
      : base_(base),
        vaults_(vaults),
        vault_(vault),
        vault_id_(std::move(vault_id)) {
    for (const ImageEntry& entry : image) image_[entry.path] = &entry;
  }

  Status Build(const CommitSteps& steps, const CommitImage& image,
               CommitView& view) {
    for (Conflict& conflict : TRY(CompareImage(base_, image))) {
      drift_[conflict.path] = std::move(conflict.reason);
    }
    tracer_.Trace(steps);
    for (const TracedPtr& object : tracer_.objects()) {
      for (const std::string& name : object->AfterNames()) known_.insert(name);
    }
    for (const auto& [fresh, old] : tracer_.replaced()) {
      paired_.insert(old.get());
    }
    for (const TracedPtr& object : tracer_.objects()) TRY(AddObject(*object));
    return Pair(view);
  }

 private:
  /// What a name that came was before, as the steps have it.
  struct Source {
    std::string path;
    bool same_object = false;  ///< then it is known whether these differ
    bool content = false;
    bool xattrs = false;
  };

  Status AddObject(const TracedObject& object) {
    const std::set<std::string> after = object.AfterNames();
    if (object.origin.vault) {
      for (const std::string& path : after) TRY(AddTree(path));
      const auto replaced = tracer_.replaced().find(&object);
      if (replaced == tracer_.replaced().end() || after.empty()) return {};
      return AddReplaced(*replaced->second, *after.begin());
    }
    if (after.empty() && paired_.contains(&object)) return {};
    std::vector<std::string> went;
    std::vector<std::string> came;
    std::ranges::set_difference(object.before, after, std::back_inserter(went));
    std::ranges::set_difference(after, object.before, std::back_inserter(came));
    const size_t moved = std::min(went.size(), came.size());
    for (size_t i = 0; i < moved; ++i) TRY(AddMoved(object, went[i], came[i]));
    for (size_t i = moved; i < went.size(); ++i) TRY(AddGone(object, went[i]));
    for (size_t i = moved; i < came.size(); ++i) TRY(AddTree(came[i]));
    const bool changed = object.old_bytes || object.set_before;
    if (moved != 0 || !changed || after.empty()) return {};
    return AddChanged(object, *object.before.begin(), *after.begin());
  }

  // --- sides

  [[nodiscard]] Result<std::reference_wrapper<const BaseDirectory>> DirectoryOf(
      const Spot& spot) const {
    if (!spot.vault) return std::cref(base_);
    const auto found = vault_.find(spot.mount);
    if (found != vault_.end()) return std::cref(found->second);
    return Fail(EBADMSG, "the vault has no part on " + spot.mount);
  }

  Result<ChangeSide> SideAt(const Spot& spot) const {
    const BaseDirectory& in = TRY(DirectoryOf(spot));
    ChangeSide side;
    const struct stat st =
        TRY(IsBeside(spot) ? in.StatReserved(spot.path) : in.Stat(spot.path));
    side.attr = AttrOf(st);
    if (S_ISLNK(st.st_mode)) side.symlink = TRY(in.ReadLink(spot.path));
    if (spot.vault) {
      side.vault_path = Vaults::PathOf(vault_id_, spot);
    } else {
      side.base_path = spot.path;
    }
    return side;
  }

  /// The side in the base that the commit left at `path`: when that has
  /// changed, what the image knows of it.
  Result<ChangeSide> SideLeft(const std::string& path) {
    const auto then = image_.find(path);
    auto side = SideAt(Spot::Base(path));
    const auto drift = drift_.find(ShownPath(path));
    if (drift == drift_.end()) return side;
    lost_[path] = drift->second;
    if (then == image_.end() || !then->second->exists) return side;
    const ImageEntry& entry = *then->second;
    ChangeSide left;
    left.attr.type = TypeOfMode(entry.mode).value_or(FileType::kRegular);
    left.attr.mode = entry.mode & 07777;
    left.attr.uid = entry.uid;
    left.attr.gid = entry.gid;
    left.attr.size = entry.size;
    left.attr.mtime = entry.mtime;
    left.base_path = path;
    return left;
  }

  /// The before side of an object that the commit changed in place, or not.
  [[nodiscard]] ChangeSide Before(const TracedObject& object,
                                  ChangeSide side) const {
    if (object.set_before) {
      side.attr.mode = object.set_before->mode;
      side.attr.uid = object.set_before->uid;
      side.attr.gid = object.set_before->gid;
      side.attr.mtime = object.set_before->mtime;
    }
    if (object.old_bytes) {
      side.attr.size = object.old_bytes->size;
      side.delta = object.old_bytes;
      side.delta->name = JoinPath(vault_id_, side.delta->name);
    }
    return side;
  }

  // --- names

  /// A name that came, and everything below it that did.
  Status AddTree(const std::string& path) {
    TRY(AddLeft(path));
    const std::string below = path + "/";
    for (auto it = image_.lower_bound(below);
         it != image_.end() && it->first.starts_with(below); ++it) {
      const std::string child(it->first);
      if (!it->second->exists || IsWithinKnown(child, path)) continue;
      TRY(AddLeft(child));
    }
    return {};
  }

  /// Nothing where nobody may look by now.
  Status AddLeft(const std::string& path) {
    auto side = SideLeft(path);
    if (!side && side.error().code == EACCES) return {};
    afters_[path] = TRY(std::move(side));
    return {};
  }

  /// Whether `path`, or a directory between it and `top`, is an object of its
  /// own.
  [[nodiscard]] bool IsWithinKnown(std::string path,
                                   const std::string& top) const {
    for (; path != top && !path.empty(); path = ParentPath(path)) {
      if (known_.contains(path)) return true;
    }
    return false;
  }

  /// A name that went; what was below it is where it is now.
  Status AddGone(const TracedObject& object, const std::string& path) {
    if (object.after.empty()) return {};
    return AddGoneTree(object, path, object.after.front());
  }

  Status AddGoneTree(const TracedObject& object, const std::string& path,
                     const Spot& now) {
    auto side = SideAt(now);
    if (!side && IsClosedOrGone(side.error())) return {};
    if (!side) return std::unexpected(std::move(side).error());
    const bool descends = now.vault && side->attr.type == FileType::kDirectory;
    befores_[path] = Before(object, *std::move(side));
    if (!descends) return {};
    const BaseDirectory& in = TRY(DirectoryOf(now));
    for (const BaseEntry& entry : TRY(ListIfOpen(in, now.path))) {
      TRY(AddGoneTree(TracedObject{}, JoinPath(path, entry.name),
                      At(now, JoinPath(now.path, entry.name))));
    }
    return {};
  }

  /// An object with another name, and what came along with it.
  Status AddMoved(const TracedObject& object, const std::string& old,
                  const std::string& path) {
    TRY(AddChanged(object, old, path));
    const auto side = afters_.find(path);
    if (side == afters_.end() ||
        side->second.attr.type != FileType::kDirectory) {
      return {};
    }
    for (const BaseEntry& entry : TRY(ListIfOpen(base_, path))) {
      const std::string child = JoinPath(path, entry.name);
      if (known_.contains(child)) continue;
      TRY(AddMoved(TracedObject{}, JoinPath(old, entry.name), child));
    }
    return {};
  }

  Status AddChanged(const TracedObject& object, const std::string& old,
                    const std::string& path) {
    auto side = SideLeft(path);
    if (!side && IsClosedOrGone(side.error())) return {};
    if (!side) return std::unexpected(std::move(side).error());
    befores_[old] = Before(object, *side);
    afters_[path] = *std::move(side);
    sources_[path] = {
        .path = old,
        .same_object = true,
        .content = object.old_bytes.has_value(),
        .xattrs = object.set_before && object.set_after &&
                  object.set_before->xattrs != object.set_after->xattrs};
    return {};
  }

  /// `path` has the content that replaced `old`'s.
  Status AddReplaced(const TracedObject& old, const std::string& path) {
    if (old.after.empty() || old.before.empty()) return {};
    auto side = SideAt(old.after.front());
    if (!side && IsClosedOrGone(side.error())) return {};
    if (!side) return std::unexpected(std::move(side).error());
    const std::string& old_path = *old.before.begin();
    befores_[old_path] = Before(old, *std::move(side));
    sources_[path] = {.path = old_path};
    return {};
  }

  // --- changes

  /// As git does: a name that is on both sides is one change, whatever moved
  /// there; then come renames.
  Status Pair(CommitView& view) {
    std::set<std::string> used;
    for (const auto& [path, after] : afters_) {
      if (befores_.contains(path)) used.insert(path);
    }
    for (auto& [path, after] : afters_) {
      NetChange change{.path = path, .after = after};
      const auto source = sources_.find(path);
      if (befores_.contains(path)) {
        change.before = befores_[path];
      } else if (source != sources_.end() &&
                 befores_.contains(source->second.path) &&
                 used.insert(source->second.path).second) {
        change.old_path = source->second.path;
        change.before = befores_[change.old_path];
      }
      TRY(Settle(std::move(change), view));
    }
    for (auto& [path, before] : befores_) {
      if (used.contains(path)) continue;
      TRY(Settle({.path = path, .before = before}, view));
    }
    std::ranges::sort(view.changes, {}, &NetChange::path);
    return {};
  }

  /// Kind and differences. What is equal is no change.
  Status Settle(NetChange change, CommitView& view) {
    if (change.before && change.after) {
      TRY(Compare(change));
      const bool is_equal = change.kind == ChangeKind::kModified &&
                            !change.content && !change.attributes;
      if (is_equal) return {};
    } else {
      change.kind = change.after ? ChangeKind::kAdded : ChangeKind::kDeleted;
      change.content = true;
    }
    const auto lost = LostPart(change);
    if (lost && change.content) view.lost.push_back({change.path, *lost});
    view.changes.push_back(std::move(change));
    return {};
  }

  Status Compare(NetChange& change) const {
    const Attr& before = change.before->attr;
    const Attr& after = change.after->attr;
    change.kind = before.type != after.type  ? ChangeKind::kTypeChanged
                  : !change.old_path.empty() ? ChangeKind::kRenamed
                                             : ChangeKind::kModified;
    change.attributes = before.mode != after.mode || before.uid != after.uid ||
                        before.gid != after.gid;
    const auto source = sources_.find(change.path);
    const std::string& old =
        change.old_path.empty() ? change.path : change.old_path;
    if (source != sources_.end() && source->second.path == old &&
        source->second.same_object) {
      change.content = source->second.content;
      change.attributes |= source->second.xattrs;
      return {};
    }
    change.content = LostPart(change) || TRY(OrDiffers(OtherContent(change)));
    return {};
  }

  /// What became of the content of a side that was in the base.
  [[nodiscard]] std::optional<std::string> LostPart(
      const NetChange& change) const {
    for (const auto& side : {change.before, change.after}) {
      if (!side || !side->vault_path.empty()) continue;
      const auto found = lost_.find(side->base_path);
      if (found != lost_.end()) return found->second;
    }
    return std::nullopt;
  }

  Result<bool> OtherContent(const NetChange& change) const {
    const ChangeSide& a = *change.before;
    const ChangeSide& b = *change.after;
    if (a.attr.type != b.attr.type || a.symlink != b.symlink) return true;
    if (a.attr.type != FileType::kRegular) return false;
    if (a.attr.size != b.attr.size || a.delta || b.delta) return true;
    const SharedFd old = TRY(OpenSide(a));
    const SharedFd fresh = TRY(OpenSide(b));
    Bytes left(kCompareBytes);
    Bytes right(kCompareBytes);
    for (uint64_t offset = 0; offset < a.attr.size; offset += left.size()) {
      const size_t n = TRY(ReadFully(old->get(), offset, left));
      const size_t m = TRY(ReadFully(fresh->get(), offset, right));
      if (n != m || !std::ranges::equal(ByteSpan(left).first(n),
                                        ByteSpan(right).first(m))) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] Result<SharedFd> OpenSide(const ChangeSide& side) const {
    if (side.vault_path.empty()) return base_.OpenFile(side.base_path);
    return vaults_.OpenFile(side.vault_path);
  }

  const BaseDirectory& base_;
  const Vaults& vaults_;
  const VaultDirectories& vault_;
  const std::string vault_id_;
  std::map<std::string_view, const ImageEntry*, std::less<>> image_;
  std::map<std::string, std::string> drift_;  ///< path to reason
  StepTracer tracer_;
  std::set<std::string> known_;  ///< names in the base of traced objects
  std::set<const TracedObject*> paired_;
  std::map<std::string, std::string> lost_;             ///< path to reason
  std::map<std::string, ChangeSide> befores_, afters_;  ///< by path
  std::map<std::string, Source> sources_;               ///< of names of afters_
};

/// The view of what takes back what `view` shows.
void SwapSides(CommitView& view) {
  for (NetChange& change : view.changes) {
    std::swap(change.before, change.after);
    if (!change.old_path.empty()) {
      for (Conflict& lost : view.lost) {
        if (lost.path == change.path) lost.path = change.old_path;
      }
      std::swap(change.path, change.old_path);
    }
    if (change.kind == ChangeKind::kAdded) {
      change.kind = ChangeKind::kDeleted;
    } else if (change.kind == ChangeKind::kDeleted) {
      change.kind = ChangeKind::kAdded;
    }
  }
  std::ranges::sort(view.changes, {}, &NetChange::path);
}

}  // namespace

Result<CommitView> ViewCommit(Store& store, const BaseDirectory& base,
                              const std::string& wanted) {
  CommitView view;
  const std::vector<TransactionSummary> list = TRY(store.List());
  view.summary = TRY(FindTransaction(list, wanted));
  // What an undo took away, and what it brought back, is what its commit did.
  TransactionSummary newest = view.summary;
  bool swapped = false;
  for (size_t left = list.size(); !newest.undone_by.empty(); --left) {
    if (left == 0) {
      return Fail(EBADMSG,
                  "the undo records of " + view.summary.id +
                      " are damaged: they form a cycle",
                  "`txfs fsck` lists all damage");
    }
    swapped = !swapped;
    newest = TRY(store.history().Read(newest.undone_by));
  }
  if (!newest.undoable) return view;
  const Committer committer(store, base);
  const CommitRecord record = TRY(committer.ReadRecord(newest.id));
  const CommitImage image = TRY(committer.ReadImage(newest.id));
  VaultDirectories vault;
  for (auto& [mount, fd] : TRY(committer.vaults().Open(record.vault))) {
    vault.try_emplace(mount, std::move(fd));
  }
  view.has_changes = true;
  TRY(ViewBuilder(base, committer.vaults(), vault, record.vault, image)
          .Build(record.steps, image, view));
  if (swapped) SwapSides(view);
  return view;
}

}  // namespace txfs
