#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "fs/diff/change_list.h"
#include "fs/diff/past.h"
#include "fs/overlay/overlay.h"
#include "fs/tree/own_xattrs.h"

namespace txfs {
namespace {

/// What stands at a path. Without an inode it is the base's, untouched.
struct Object {
  Inode* inode = nullptr;
  ChangeSide side;

  [[nodiscard]] bool IsDirectory() const {
    return side.attr.type == FileType::kDirectory;
  }
  [[nodiscard]] bool IsUpper() const {
    return inode != nullptr && inode->upper;
  }
};

/// Paths in one of the two trees.
class Viewer {
 public:
  Viewer(Tree& tree, const BaseDirectory& base) : tree_(tree), base_(base) {}

  Tree& tree() { return tree_; }

  Result<std::optional<Object>> At(const std::string& path) {
    std::optional<Object> at = ObjectOf(tree_.root());
    std::string_view rest = path;
    // Most paths follow one of their directory.
    if (!last_.empty() && IsAtOrBelow(path, last_)) {
      at = at_last_;
      rest.remove_prefix(std::min(last_.size() + 1, path.size()));
    }
    while (!rest.empty() && at) {
      const std::string_view name = rest.substr(0, rest.find('/'));
      rest.remove_prefix(std::min(name.size() + 1, rest.size()));
      if (!at->IsDirectory()) return std::optional<Object>();
      at = TRY(ChildOf(*at, name));
    }
    if (at && at->IsDirectory()) {
      last_ = path;
      at_last_ = at;
    }
    return at;
  }

  /// The names in a directory.
  Result<std::set<std::string>> List(const Object& directory) {
    std::set<std::string> names;
    const std::string* base = BasePathOf(directory);
    if (base != nullptr) {
      for (const BaseEntry& entry : TRY(ListIfOpen(base_, *base))) {
        names.insert(entry.name);
      }
    }
    if (directory.inode == nullptr) return names;
    for (const auto& [name, slot] : directory.inode->names->slots) {
      if (slot.upper.kind == DentryKind::kWhiteout) names.erase(name);
      if (slot.upper.kind == DentryKind::kInode) names.insert(name);
    }
    // What the base does not have.
    directory.inode->ForEachCached(
        [&](const std::string& name, const Inode& child) {
          if (names.contains(name)) return;
          if (IsKept(child) || LeadsToUpper(child)) names.insert(name);
        });
    return names;
  }

 private:
  static Object ObjectOf(Inode& inode) {
    Object object{&inode, {}};
    object.side.attr = inode.attr();
    object.side.symlink = inode.record.symlink();
    if (inode.upper) object.side.ino = inode.ino;
    if (inode.record.base) object.side.base_path = inode.record.base->path;
    return object;
  }

  /// Whether the base name of a child stays what it was, whatever has it there
  /// now.
  static bool IsKept(const Inode& child) { return child.lost || child.upper; }

  static bool LeadsToUpper(const Inode& inode) {
    bool leads = inode.upper || inode.names->upper != 0;
    if (leads) return true;
    inode.ForEachCached([&](const std::string&, const Inode& child) {
      leads = leads || LeadsToUpper(child);
    });
    return leads;
  }

  static const std::string* BasePathOf(const Object& directory) {
    if (directory.inode == nullptr) return &directory.side.base_path;
    const auto& base = directory.inode->record.base;
    return base ? &base->path : nullptr;
  }

  Result<std::optional<Object>> ChildOf(const Object& directory,
                                        std::string_view name) {
    if (directory.inode != nullptr) {
      Inode* child = tree_.FindChild(*directory.inode, name);
      const bool is_upper = directory.inode->UpperSlot(name) != nullptr;
      if (is_upper && child == nullptr) return std::optional<Object>();
      if (is_upper || (child != nullptr && IsKept(*child))) {
        return std::optional(ObjectOf(*child));
      }
    }
    const std::string* base = BasePathOf(directory);
    if (base == nullptr) return std::optional<Object>();
    auto found = TRY(BaseAt(JoinPath(*base, name)));
    if (found || directory.inode == nullptr) return found;
    // What the base has lost and no refresh has noticed yet.
    Inode* known = tree_.FindChild(*directory.inode, name);
    if (known != nullptr && LeadsToUpper(*known)) found = ObjectOf(*known);
    return found;
  }

  Result<std::optional<Object>> BaseAt(const std::string& path) {
    auto found = FindObject(base_, path);
    if (!found && IsClosedOrGone(found.error())) return std::optional<Object>();
    auto object = TRY(std::move(found));
    if (!object) return std::optional<Object>();
    Inode* inode = S_ISDIR(object->st.st_mode)
                       ? tree_.FindBaseDirectory(path)
                       : tree_.FindBaseFile(path, object->st);
    if (inode != nullptr && !inode->IsOrphan()) {
      return std::optional(ObjectOf(*inode));
    }
    return std::optional(Object{nullptr, SideOf(std::move(*object))});
  }

  std::string last_;  ///< directory that was asked for last; "": none
  std::optional<Object> at_last_;
  Tree& tree_;
  const BaseDirectory& base_;
};

/// Whether two sides, at whatever paths, are one file.
bool IsSame(const Object& then, const Object& now) {
  if (then.side.attr.type != now.side.attr.type) return false;
  const bool of_base = !then.side.base_path.empty();
  if (of_base || !now.side.base_path.empty()) {
    return then.side.base_path == now.side.base_path;
  }
  return then.inode != nullptr && now.inode != nullptr &&
         then.inode->ino == now.inode->ino;
}

bool HasSameContent(const Object& then, const Object& now) {
  if (!IsSame(then, now)) return false;
  if (!then.IsUpper() && !now.IsUpper()) return true;
  const ExtentMap none;
  const ExtentMap& before = then.IsUpper() ? then.inode->extents : none;
  const ExtentMap& after = now.IsUpper() ? now.inode->extents : none;
  return before == after && then.side.attr.size == now.side.attr.size &&
         then.side.attr.base_limit == now.side.attr.base_limit;
}

}  // namespace

class SinceCollector {
 public:
  /// `until`: null for the present tree.
  SinceCollector(Frozen& frozen, std::shared_ptr<Past> past,
                 std::shared_ptr<Past> until)
      : frozen_(frozen),
        then_(past->tree_, frozen.base),
        now_(until ? until->tree_ : frozen.tree, frozen.base) {
    list_.past_ = std::move(past);
    list_.until_ = std::move(until);
  }

  Result<SinceList> Run() {
    const Lsn until = list_.until_ ? list_.until_->savepoint_.lsn : kNoLsn;
    const Rewind rewind =
        TRY(frozen_.journal.PlanRewind(list_.past_->savepoint_.lsn, until));
    CollectPaths(rewind, then_.tree());
    CollectPaths(rewind, now_.tree());
    while (!pending_.empty()) {
      const std::string path = *pending_.begin();
      pending_.erase(pending_.begin());
      TRY(Look(path));
    }
    TRY(Pair());
    return std::move(list_);
  }

 private:
  void Want(const std::string& path) {
    if (!seen_.contains(path)) pending_.insert(path);
  }

  /// Every path at which something may be other than it was.
  void CollectPaths(const Rewind& rewind, Tree& tree) {
    PathMemo memo;
    const auto want_all = [&](Ino ino) {
      const Inode* inode = tree.Find(ino);
      if (inode == nullptr) return;
      for (const std::string& path : tree.VisiblePaths(*inode, &memo)) {
        Want(path);
      }
    };
    for (const auto& past : rewind.inodes) want_all(past.ino);
    for (const auto& [key, value] : rewind.xattrs) want_all(key.first);
    for (const auto& [key, value] : rewind.dentries) {
      const Inode* parent = tree.Find(key.first);
      if (parent == nullptr) continue;
      const auto above = tree.VisiblePath(*parent, {}, &memo);
      if (above) Want(JoinPath(*above, key.second));
    }
  }

  /// Notes both sides of `path`; below a directory that came, went or is
  /// another one, everything is to be looked at.
  Status Look(const std::string& path) {
    seen_.insert(path);
    auto then = TRY(then_.At(path));
    auto now = TRY(now_.At(path));
    const bool same = then && now && IsSame(*then, *now);
    if (!same && then && then->IsDirectory())
      TRY(WantBelow(then_, *then, path));
    if (!same && now && now->IsDirectory()) TRY(WantBelow(now_, *now, path));
    if (then) before_.emplace(path, std::move(*then));
    if (now) after_.emplace(path, std::move(*now));
    return {};
  }

  Status WantBelow(Viewer& viewer, const Object& directory,
                   const std::string& path) {
    for (const std::string& name : TRY(viewer.List(directory))) {
      Want(JoinPath(path, name));
    }
    return {};
  }

  Status Pair() {
    for (const auto& [path, then] : before_) {
      if (!after_.contains(path)) by_identity_.emplace(Identity(then), path);
    }
    std::set<std::string> moved;
    for (const auto& [path, now] : after_) {
      const auto then = before_.find(path);
      if (then != before_.end()) {
        TRY(AddPair(path, "", then->second, now));
      } else if (const std::string* old = OldPathOf(now); old != nullptr) {
        moved.insert(*old);
        TRY(AddPair(path, *old, before_.at(*old), now));
      } else {
        NetChange change{.kind = ChangeKind::kAdded, .path = path};
        change.after = now.side;
        change.content = true;
        list_.candidates_.push_back({std::move(change)});
      }
    }
    for (const auto& [path, then] : before_) {
      if (after_.contains(path) || moved.contains(path)) continue;
      NetChange change{.kind = ChangeKind::kDeleted, .path = path};
      change.before = then.side;
      change.content = true;
      list_.candidates_.push_back({std::move(change)});
    }
    return {};
  }

  /// Where `now` was, when nothing is there any more.
  const std::string* OldPathOf(const Object& now) {
    const auto found = by_identity_.find(Identity(now));
    if (found == by_identity_.end()) return nullptr;
    return IsSame(before_.at(found->second), now) ? &found->second : nullptr;
  }

  static std::pair<std::string, uint64_t> Identity(const Object& object) {
    if (!object.side.base_path.empty()) return {object.side.base_path, 0};
    return {"", object.inode == nullptr ? 0 : Raw(object.inode->ino)};
  }

  Status AddPair(const std::string& path, const std::string& old_path,
                 const Object& then, const Object& now) {
    SinceList::Candidate candidate;
    NetChange& change = candidate.change;
    change.path = path;
    change.old_path = old_path;
    if (!old_path.empty()) change.kind = ChangeKind::kRenamed;
    const Attr& before = then.side.attr;
    const Attr& after = now.side.attr;
    if (before.type != after.type) {
      change.kind = ChangeKind::kTypeChanged;
      change.content = true;
    } else if (after.type == FileType::kSymlink) {
      change.content = then.side.symlink != now.side.symlink;
    } else if (after.type == FileType::kRegular) {
      change.content = before.size != after.size;
      candidate.compare = !change.content && !HasSameContent(then, now);
    }
    change.attributes =
        before.mode != after.mode || before.uid != after.uid ||
        before.gid != after.gid ||
        ((then.IsUpper() || now.IsUpper() || !IsSame(then, now)) &&
         TRY(OrDiffers(XattrsDiffer(then, now))));
    change.before = then.side;
    change.after = now.side;
    list_.candidates_.push_back(std::move(candidate));
    return {};
  }

  Result<bool> XattrsDiffer(const Object& then, const Object& now) {
    return TRY(XattrsOf(then)) != TRY(XattrsOf(now));
  }

  Result<std::map<std::string, std::string>> XattrsOf(const Object& object) {
    const bool own =
        object.inode != nullptr &&
        (!object.inode->record.base || object.inode->attr().xattrs_owned);
    if (!own) return frozen_.origins.BaseXattrs(object.side.base_path);
    return OwnXattrs(*object.inode);
  }

  Frozen& frozen_;
  Viewer then_, now_;
  std::set<std::string> pending_, seen_;
  std::map<std::string, Object> before_, after_;
  /// Of what is no longer where it was: its path.
  std::map<std::pair<std::string, uint64_t>, std::string> by_identity_;
  SinceList list_;
};

Result<SinceList> SinceList::Collect(Frozen& frozen, std::shared_ptr<Past> past,
                                     std::shared_ptr<Past> until) {
  return SinceCollector(frozen, std::move(past), std::move(until)).Run();
}

Result<std::vector<NetChange>> SinceList::Settle(
    OverlayFilesystem& filesystem) && {
  const auto read = [&](const ChangeSide& side, bool before, uint64_t offset,
                        MutableByteSpan out) -> Result<size_t> {
    if (side.ino == kNoIno) {
      return filesystem.ReadBase(side.base_path, offset, out);
    }
    const auto& past = before ? past_ : until_;
    if (past) return past->Read(filesystem, side.ino, offset, out);
    return filesystem.Read(side.ino, offset, out);
  };
  Bytes a(kCompareBytes);
  Bytes b(kCompareBytes);
  std::vector<NetChange> changes;
  for (Candidate& candidate : candidates_) {
    NetChange& change = candidate.change;
    const auto differ = [&]() -> Result<bool> {
      for (uint64_t at = 0; at < change.after->attr.size;) {
        const size_t was = TRY(read(*change.before, true, at, a));
        const size_t is = TRY(read(*change.after, false, at, b));
        if (!std::ranges::equal(ByteSpan(a).first(was),
                                ByteSpan(b).first(is))) {
          return true;
        }
        if (is == 0) break;
        at += is;
      }
      return false;
    };
    if (candidate.compare && !change.content) {
      change.content = TRY(OrDiffers(differ()));
    }
    const bool differs = change.content || change.attributes ||
                         change.kind != ChangeKind::kModified;
    if (differs) changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace txfs
