#include "fs/planning/revert.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "fs/tree/plan.h"

namespace txfs {
namespace {

using PlacedName = std::pair<Ino, std::string>;
using MaybeRecord = std::optional<InodeRecord>;

DentryValue NameIn(const Image& image, const PlacedName& name) {
  const auto row = image.dentries.find(name);
  return row == image.dentries.end() ? DentryValue() : row->second;
}

MaybeRecord RecordIn(const Image& image, Ino ino) {
  const auto row = image.inodes.find(ino);
  return row == image.inodes.end() ? MaybeRecord() : MaybeRecord(row->second);
}

std::map<uint64_t, Extent> ExtentsIn(const Image& image, Ino ino) {
  std::map<uint64_t, Extent> extents;
  for (auto row = image.extents.lower_bound({ino, 0});
       row != image.extents.end() && row->first.first == ino; ++row) {
    extents.emplace(row->first.second, row->second);
  }
  return extents;
}

std::map<std::string, std::string> XattrsIn(const Image& image, Ino ino) {
  std::map<std::string, std::string> xattrs;
  for (auto row = image.xattrs.lower_bound({ino, ""});
       row != image.xattrs.end() && row->first.first == ino; ++row) {
    xattrs.emplace(row->first.second, row->second);
  }
  return xattrs;
}

bool HoldsNames(const InodeRecord& record) {
  return record.attr.type == FileType::kDirectory;
}

/// What of a directory's record a call may change, besides its names.
bool HasSameAttributes(const InodeRecord& a, const InodeRecord& b) {
  return a.attr.mode == b.attr.mode && a.attr.uid == b.attr.uid &&
         a.attr.gid == b.attr.gid &&
         a.attr.xattrs_owned == b.attr.xattrs_owned &&
         (a.attr.nlink == 0) == (b.attr.nlink == 0);
}

/// Whether the two are the same for who looks at them: without the times of
/// access and of change, and of directories without what their names decide.
bool IsSame(const MaybeRecord& a, const MaybeRecord& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  if (a->attr.type != b->attr.type) return false;
  if (HoldsNames(*a)) return HasSameAttributes(*a, *b);
  Attr other = b->attr;
  other.atime = a->attr.atime;
  other.ctime = a->attr.ctime;
  return a->attr == other && a->symlink == b->symlink;
}

/// An object at one of the three times.
struct Then {
  MaybeRecord record;
  std::map<uint64_t, Extent> extents;
  std::map<std::string, std::string> xattrs;

  static Then Of(const Image& image, Ino ino) {
    return {RecordIn(image, ino), ExtentsIn(image, ino), XattrsIn(image, ino)};
  }
  [[nodiscard]] bool IsSameAs(const Then& other) const {
    return IsSame(record, other.record) && extents == other.extents &&
           xattrs == other.xattrs;
  }
  [[nodiscard]] bool IsThere() const {
    return record && record->attr.nlink != 0;
  }
};

class RevertPlanner {
 public:
  RevertPlanner(Tree& tree, const Rewind& part, const Rewind& later,
                const Image& now)
      : tree_(tree),
        part_(part),
        later_(later),
        now_(now),
        after_(now),
        before_(now) {
    later.ApplyTo(after_);
    before_ = after_;
    part.ApplyTo(before_);
  }

  RevertPlan Run() {
    FindNames();
    FindLater();
    for (const Rewind::PastInode& past : part_.inodes) {
      LookAt(past.ino, &past);
    }
    for (const auto& [key, value] : part_.xattrs) LookAt(key.first, nullptr);
    for (auto& [path, dependence] : built_on_) {
      plan_.built_on.push_back(std::move(dependence));
    }
    if (!plan_.built_on.empty()) return Refused();
    for (const auto& [name, value] : names_) {
      dentry_edits_.push_back(
          DentryEdit{name.first, name.second, NameIn(now_, name), value});
      plan_.rewind.dentries[name] = value;
    }
    for (auto* edits : {&inode_edits_, &dentry_edits_, &content_edits_}) {
      std::ranges::move(*edits, std::back_inserter(plan_.edits));
    }
    plan_.paths.assign(paths_.begin(), paths_.end());
    return std::move(plan_);
  }

 private:
  RevertPlan Refused() {
    RevertPlan refused;
    refused.built_on = std::move(plan_.built_on);
    return refused;
  }

  Dependence& BuiltOn(const std::string& path, const char* reason) {
    Dependence& dependence = built_on_[path];
    if (dependence.reason.empty()) {
      dependence.path = path;
      dependence.reason = reason;
    }
    return dependence;
  }
  void BuiltOn(const PlacedName& name, const char* reason) {
    BuiltOn(PathOf(name), reason).names.insert(name);
  }
  void BuiltOn(Ino object, const char* reason) {
    BuiltOn(PathOf(object), reason).objects.insert(object);
  }

  std::string PathOf(const PlacedName& name) {
    const Inode* directory = tree_.Find(name.first);
    if (directory != nullptr) return tree_.PathOf(*directory, name.second);
    return JoinPath(PathAfter(name.first), name.second);
  }

  std::string PathOf(Ino ino) {
    const auto name = name_of_.find(ino);
    if (name != name_of_.end()) return PathOf(name->second);
    const Inode* inode = tree_.Find(ino);
    return inode != nullptr ? tree_.PathOf(*inode) : PathAfter(ino);
  }

  /// The path directly after the part of an object that later changes removed.
  std::string PathAfter(Ino ino) {
    if (names_after_.empty()) {
      for (const auto& [name, value] : after_.dentries) {
        if (value.ino != kNoIno) names_after_.try_emplace(value.ino, name);
      }
    }
    const auto name = names_after_.extract(ino);  // so that no circle is walked
    if (!name.empty()) {
      std::string path = PathOf(name.mapped());
      names_after_.try_emplace(ino, name.mapped());
      return path;
    }
    const MaybeRecord record = RecordIn(after_, ino);
    return record && record->base ? record->base->path : now_.Describe(ino);
  }

  /// The names that the part changed, with their values before it.
  void FindNames() {
    for (const auto& [name, value] : part_.dentries) {
      const DentryValue before = NameIn(before_, name);
      if (before != NameIn(after_, name)) names_.emplace(name, before);
    }
    for (const auto& [name, before] : names_) {
      paths_.insert(PathOf(name));
      for (const Ino ino : {before.ino, NameIn(now_, name).ino}) {
        if (ino != kNoIno) name_of_.try_emplace(ino, name);
      }
      if (NameIn(now_, name) != NameIn(after_, name)) {
        BuiltOn(name, "changed later");
      } else if (WentLater(name.first)) {
        BuiltOn(PathOf(name), "its directory was deleted later")
            .objects.insert(name.first);
      }
    }
  }

  [[nodiscard]] bool WentLater(Ino directory) const {
    const MaybeRecord after = RecordIn(after_, directory);
    const MaybeRecord now = RecordIn(now_, directory);
    if (!now) return after.has_value();
    return now->attr.nlink == 0 && !(after && after->attr.nlink == 0);
  }

  /// What later changes have to do with the names of the part.
  void FindLater() {
    for (const auto& [name, value] : later_.dentries) {
      const DentryValue after = NameIn(after_, name);
      const DentryValue now = NameIn(now_, name);
      if (after == now) continue;
      for (const Ino ino : {after.ino, now.ino}) {
        if (ino != kNoIno) renamed_.insert(ino);
      }
      const Inode* directory = tree_.Find(name.first);
      if (directory != nullptr && IsReachedByPart(*directory)) {
        BuiltOn(name, "changed later in a directory of the call");
      }
    }
    std::set<Ino> touched;
    for (const auto& past : later_.inodes) touched.insert(past.ino);
    for (const auto& [key, value] : later_.xattrs) touched.insert(key.first);
    for (const Ino ino : touched) {
      const Inode* inode = tree_.Find(ino);
      if (inode == nullptr || inode->IsOrphan()) continue;
      if (Then::Of(after_, ino).IsSameAs(Then::Of(now_, ino))) continue;
      if (IsPlainRecord(ino)) continue;
      if (IsReachedByPart(*inode)) {
        BuiltOn(tree_.PathOf(*inode), "changed later").objects.insert(ino);
      }
    }
  }

  /// Whether later changes gave a base object a record and nothing else: a name
  /// in a directory changed, which counts as that, or a revert took back what
  /// had changed.
  [[nodiscard]] bool IsPlainRecord(Ino ino) const {
    const MaybeRecord after = RecordIn(after_, ino);
    const MaybeRecord now = RecordIn(now_, ino);
    if (after || !now || !now->base) return false;
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr) return false;
    return HoldsNames(*now) ? !inode->AttributesChanged()
                            : inode->IsUnchanged();
  }

  /// Whether the present path of `inode` leads over a name that the part set.
  bool IsReachedByPart(const Inode& inode) {
    if (const auto known = reached_.find(inode.ino); known != reached_.end()) {
      return known->second;
    }
    std::vector<Ino> way;
    const Inode* at = &inode;
    bool reached = false;
    while (at != nullptr && at->ino != kRootIno && !reached) {
      if (const auto known = reached_.find(at->ino); known != reached_.end()) {
        reached = known->second;
        break;
      }
      way.push_back(at->ino);
      const Inode* above = nullptr;
      for (const Inode::Link& link : at->links) {
        reached = reached || names_.contains({link.parent, link.name});
        above = tree_.Find(link.parent);
      }
      at = above;
    }
    for (const Ino ino : way) reached_[ino] = reached;
    return reached;
  }

  void LookAt(Ino ino, const Rewind::PastInode* past) {
    if (!looked_at_.insert(ino).second) return;
    Then before = Then::Of(before_, ino);
    const Then after = Then::Of(after_, ino);
    const Then now = Then::Of(now_, ino);
    // It was in the base, and without a record. The record stays, as that of an
    // object that is what it was: a rollback of the revert finds it by its
    // number.
    if (!before.record && past != nullptr && past->record &&
        past->has == Rewind::PastInode::Record::kVanishes &&
        past->record->base) {
      before.record = past->record;
    }
    if (!before.record && !after.record) return;
    const bool directory =
        HoldsNames(before.record ? *before.record : *after.record);
    if (directory && before.IsThere() && after.IsThere()) {
      return PlanDirectory(ino, before, after, now);
    }
    if (before.IsSameAs(after)) {
      // As another name had it.
      if (after.IsSameAs(now) && !renamed_.contains(ino)) Set(ino, now, before);
      return;
    }
    paths_.insert(PathOf(ino));
    if (!after.IsSameAs(now)) return BuiltOn(ino, "changed later");
    if (!directory && renamed_.contains(ino)) {
      return BuiltOn(ino, "renamed or linked later");
    }
    if (directory && after.IsThere()) {
      const auto others = OtherNames(ino);
      if (!others.empty()) {
        BuiltOn(PathOf(ino), "has later entries").names = others;
        return;
      }
    }
    Set(ino, now, before);
  }

  /// The names in the directory that neither the part nor the time before it
  /// gave it. A base directory keeps its whiteouts when it is deleted.
  [[nodiscard]] std::set<PlacedName> OtherNames(Ino directory) const {
    std::set<PlacedName> others;
    for (auto row = now_.dentries.lower_bound({directory, ""});
         row != now_.dentries.end() && row->first.first == directory; ++row) {
      const auto& [name, value] = *row;
      if (!names_.contains(name) && value != NameIn(before_, name)) {
        others.insert(name);
      }
    }
    return others;
  }

  /// A directory that was there before and after. What names in it decide is
  /// merged with later changes.
  void PlanDirectory(Ino ino, const Then& was, const Then& after,
                     const Then& now) {
    const bool changed = !was.IsSameAs(after);
    if (changed) paths_.insert(PathOf(ino));
    if (changed && !after.IsSameAs(now)) {
      return BuiltOn(ino, "changed later");
    }
    if (!now.IsThere()) return;  // found by its names
    Then merged = now;
    Attr& attr = merged.record->attr;
    const Attr& then = was.record->attr;
    if (changed) {
      attr.mode = then.mode;
      attr.uid = then.uid;
      attr.gid = then.gid;
      attr.xattrs_owned = then.xattrs_owned;
      merged.xattrs = was.xattrs;
    }
    attr.nlink = CountSubdirectories(
        attr.nlink, int64_t{then.nlink} - int64_t{after.record->attr.nlink});
    if (now.record->attr == after.record->attr) {
      attr.mtime = then.mtime;
      attr.ctime = then.ctime;
    }
    Set(ino, now, merged);
  }

  /// Plans the edits from `now` to `target`.
  void Set(Ino ino, const Then& now, const Then& target) {
    Rewind::PastInode past{.ino = ino};
    if (now.record != target.record) {
      SetRecord(now, target, past);
    }
    ExtentEdit extents{.ino = ino};
    for (const auto& [offset, extent] : now.extents) {
      const auto stays = target.extents.find(offset);
      if (stays != target.extents.end() && stays->second == extent) continue;
      extents.before.push_back(extent);
      past.extents[offset] = std::nullopt;
    }
    for (const auto& [offset, extent] : target.extents) {
      const auto is = now.extents.find(offset);
      if (is != now.extents.end() && is->second == extent) continue;
      extents.after.push_back(extent);
      past.extents[offset] = extent;
    }
    if (!extents.before.empty() || !extents.after.empty()) {
      content_edits_.emplace_back(std::move(extents));
    }
    SetXattrs(ino, now, target);
    // Unchanged, too: it may have got back a name that the base has.
    plan_.rewind.inodes.push_back(std::move(past));
  }

  void SetRecord(const Then& now, const Then& target, Rewind::PastInode& past) {
    const bool only_attr = now.record && target.record &&
                           now.record->base == target.record->base &&
                           now.record->symlink == target.record->symlink;
    if (only_attr) {
      past.attr = target.record->attr;
      inode_edits_.emplace_back(
          AttrEdit{past.ino, now.record->attr, target.record->attr});
      return;
    }
    using Becomes = Rewind::PastInode::Record;
    past.has = target.record ? Becomes::kReturns : Becomes::kVanishes;
    past.record = target.record ? target.record : now.record;
    inode_edits_.emplace_back(InodeEdit{past.ino, now.record, target.record});
  }

  void SetXattrs(Ino ino, const Then& now, const Then& target) {
    const auto set = [&](const std::string& name,
                         const std::optional<std::string>& before,
                         const std::optional<std::string>& after) {
      content_edits_.emplace_back(XattrEdit{ino, name, before, after});
      plan_.rewind.xattrs[{ino, name}] = after;
    };
    for (const auto& [name, value] : now.xattrs) {
      if (!target.xattrs.contains(name)) set(name, value, std::nullopt);
    }
    for (const auto& [name, value] : target.xattrs) {
      const auto is = now.xattrs.find(name);
      if (is == now.xattrs.end()) {
        set(name, std::nullopt, value);
      } else if (is->second != value) {
        set(name, is->second, value);
      }
    }
  }

  Tree& tree_;
  const Rewind& part_;
  const Rewind& later_;
  const Image& now_;
  Image after_;   ///< the rows after the part
  Image before_;  ///< the rows before it
  std::map<PlacedName, DentryValue> names_;
  std::map<Ino, PlacedName> name_of_;  ///< one of `names_` that leads there
  std::set<Ino> renamed_;              ///< in names that changed later
  std::map<Ino, bool> reached_;        ///< IsReachedByPart
  std::set<Ino> looked_at_;
  std::map<std::string, Dependence> built_on_;  ///< by path
  std::map<Ino, PlacedName> names_after_;       ///< a name of each inode
  std::set<std::string> paths_;
  std::vector<Edit> inode_edits_, dentry_edits_, content_edits_;
  RevertPlan plan_;
};

/// Whether the objects of `dependence` or its names are what an edit changed.
struct IsBuilding {
  const Dependence& dependence;

  bool operator()(const InodeEdit& edit) const {
    return Has(edit.ino) && !IsSame(edit.before, edit.after);
  }
  bool operator()(const AttrEdit& edit) const {
    return Has(edit.ino) && !IsSame(InodeRecord{.attr = edit.before},
                                    InodeRecord{.attr = edit.after});
  }
  bool operator()(const DentryEdit& edit) const {
    return Has(edit.before.ino) || Has(edit.after.ino) ||
           dependence.names.contains({edit.parent, edit.name});
  }
  bool operator()(const ExtentEdit& edit) const { return Has(edit.ino); }
  bool operator()(const XattrEdit& edit) const { return Has(edit.ino); }

  [[nodiscard]] bool Has(Ino ino) const {
    return ino != kNoIno && dependence.objects.contains(ino);
  }
};

}  // namespace

bool Dependence::IsOf(const Change& change) const {
  const auto is_building = [&](const Edit& edit) {
    return std::visit(IsBuilding{*this}, edit);
  };
  return std::ranges::any_of(change.edits, is_building);
}

RevertPlan PlanRevert(Tree& tree, const Rewind& part, const Rewind& later,
                      const Image& now) {
  return RevertPlanner(tree, part, later, now).Run();
}

}  // namespace txfs
