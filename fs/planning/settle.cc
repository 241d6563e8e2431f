#include "fs/planning/settle.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <variant>

#include "fs/tree/plan.h"
#include "fs/tree/settlement.h"

namespace txfs {
namespace {

class SettlePlanner {
 public:
  SettlePlanner(Frozen& frozen, const Selection& selection, const Image& tables,
                const PartCommit* commit)
      : frozen_(frozen),
        selection_(selection),
        tables_(tables),
        commit_(commit) {}

  Result<std::vector<Edit>> Run() {
    if (commit_ != nullptr) FindMoves();
    PlanNames();
    for (const auto& [ino, record] : tables_.inodes) {
      const Inode* inode = frozen_.tree.Find(ino);
      if (inode != nullptr) TRY(PlanInode(*inode, record));
    }
    return std::move(edits_);
  }

 private:
  void FindMoves() {
    PathMemo memo;
    for (const Ino ino : selection_.inodes) {
      const Inode* inode = frozen_.tree.Find(ino);
      if (inode == nullptr || !inode->IsDirectory() || !inode->record.base) {
        continue;
      }
      const auto visible = frozen_.tree.VisiblePath(*inode, {}, &memo);
      if (visible) moves_[inode->record.base->path] = *visible;
    }
  }

  void PlanNames() {
    for (const auto& [ino, name] : selection_.names) {
      const auto row = tables_.dentries.find({ino, name});
      if (row == tables_.dentries.end()) continue;
      edits_.emplace_back(DentryEdit{ino, name, row->second, DentryValue{}});
      const int gained =
          SubdirectoriesGained(row->second, BaseHasDirectory(ino, name));
      if (gained != 0 || subdirectories_.contains(ino)) {
        subdirectories_[ino] += gained;
      }
    }
  }

  /// By a directory without the row: one that goes with the name, and one of
  /// the base that comes back.
  [[nodiscard]] int SubdirectoriesGained(const DentryValue& value,
                                         bool hides_directory) const {
    int gained = hides_directory ? 1 : 0;
    if (value.kind == DentryKind::kInode) {
      const Inode* child = frozen_.tree.Find(value.ino);
      if (child != nullptr && child->IsDirectory()) --gained;
    }
    return gained;
  }

  [[nodiscard]] bool BaseHasDirectory(Ino ino, const std::string& name) const {
    const Inode* directory = frozen_.tree.Find(ino);
    if (directory == nullptr || !directory->record.base) return false;
    const auto st =
        frozen_.base.Stat(JoinPath(directory->record.base->path, name));
    return st && S_ISDIR(st->st_mode);
  }

  /// Whether names of the directory stay changed.
  [[nodiscard]] bool KeepsNames(Ino directory) const {
    for (auto row = tables_.dentries.lower_bound({directory, ""});
         row != tables_.dentries.end() && row->first.first == directory;
         ++row) {
      if (!selection_.names.contains(row->first)) return true;
    }
    return false;
  }

  Status PlanInode(const Inode& inode, const InodeRecord& before) {
    InodeRecord after = before;
    const bool ends =
        selection_.inodes.contains(inode.ino) || HasNothingElse(inode);
    if (ends) {
      const bool stays =
          inode.IsDirectory() && !inode.IsOrphan() && KeepsNames(inode.ino);
      if (!stays) {
        DropContent(inode.ino);
        edits_.emplace_back(InodeEdit{inode.ino, before, std::nullopt});
        return {};
      }
      if (commit_ != nullptr) {
        TRY(SetOrigin(inode, after));
      } else {
        TRY(TakeBaseAttributes(inode, after));
      }
    } else if (after.base) {
      after.base->path = FollowMoves(moves_, after.base->path);
      if (commit_ != nullptr && inode.IsDirectory()) {
        CorrectLinkCount(inode, -1, after.base->nlink);
      }
    }
    if (commit_ == nullptr && !CountLinksAnew(inode, after)) {
      CorrectLinkCount(inode, 1, after.attr.nlink);
    }
    // A Settlement takes from them which directories a commit leaves in place.
    if ((ends && commit_ != nullptr) || after != before) {
      edits_.emplace_back(InodeEdit{inode.ino, before, std::move(after)});
    }
    return {};
  }

  /// A directory that was changed by nothing but the names of this part (that
  /// sets both times to the same): it is the base's, whatever becomes of it
  /// there. Not if a commit left its times to the rest: what happened in it
  /// came to nothing.
  [[nodiscard]] bool HasNothingElse(const Inode& inode) const {
    if (commit_ != nullptr && !commit_->touched.contains(inode.ino)) {
      return false;
    }
    if (!inode.IsDirectory() || !inode.record.base || inode.ino == kRootIno ||
        inode.IsOrphan()) {
      return false;
    }
    const auto selected = selection_.names.lower_bound({inode.ino, ""});
    if (selected == selection_.names.end() || selected->first != inode.ino) {
      return false;
    }
    return !inode.AttributesChanged() &&
           inode.attr().mtime == inode.attr().ctime &&
           frozen_.tree.IsAtItsPlace(inode) && !KeepsNames(inode.ino);
  }

  /// A directory in which other names stay changed: it is one of the base now.
  Status SetOrigin(const Inode& inode, InodeRecord& record) {
    const auto visible = frozen_.tree.VisiblePath(inode);
    if (!visible) return Fail(EIO, "settle a directory without a path");
    const Attr& attr = record.attr;
    uint64_t base_ino = record.base ? record.base->ino : 0;
    const auto made = commit_->made.find(inode.ino);
    if (made != commit_->made.end()) base_ino = made->second;
    record.base = BaseOrigin{.path = *visible,
                             .dev = record.base ? record.base->dev : 0,
                             .ino = base_ino,
                             .size = attr.size,
                             .mode = ModeBits(attr.type) | attr.mode,
                             .nlink = record.base ? record.base->nlink : 2,
                             .uid = attr.uid,
                             .gid = attr.gid,
                             .mtime = attr.mtime,
                             .ctime = attr.ctime};
    CorrectLinkCount(inode, -1, record.base->nlink);
    // What it had of its own has gone there, too.
    record.attr.xattrs_owned = false;
    DropXattrs(inode.ino);
    return {};
  }

  /// The same in a discard: only its own attributes are the base's again.
  Status TakeBaseAttributes(const Inode& inode, InodeRecord& record) {
    if (!record.base) return {};
    const uint32_t nlink = record.attr.nlink;
    record.attr = AttrOf(TRY(frozen_.base.Stat(record.base->path)));
    record.attr.nlink = nlink;
    DropXattrs(inode.ino);
    return {};
  }

  /// By the subdirectories that come back or go; a commit is the reverse, in
  /// the base.
  void CorrectLinkCount(const Inode& inode, int sign, uint32_t& nlink) const {
    const auto delta = subdirectories_.find(inode.ino);
    if (delta == subdirectories_.end()) return;
    nlink = CountSubdirectories(nlink, int64_t{sign} * delta->second);
  }

  /// What comes back may be somebody else's, whom the record's count of the
  /// base does not know. False when the base does not say how many it has.
  [[nodiscard]] bool CountLinksAnew(const Inode& inode,
                                    InodeRecord& record) const {
    if (!subdirectories_.contains(inode.ino) || !record.base) return false;
    const auto st = frozen_.base.Stat(record.base->path);
    if (!st || !frozen_.tree.IsOrigin(inode, *st) || st->st_nlink < 2) {
      return false;
    }
    const auto entries = frozen_.base.List(record.base->path);
    if (!entries) return false;
    std::unordered_set<std::string_view> directories;
    for (const BaseEntry& entry : *entries) {
      if (entry.type == FileType::kDirectory) directories.insert(entry.name);
    }
    int64_t links = static_cast<int64_t>(st->st_nlink);
    for (auto row = tables_.dentries.lower_bound({inode.ino, ""});
         row != tables_.dentries.end() && row->first.first == inode.ino;
         ++row) {
      if (selection_.names.contains(row->first)) continue;
      links -= SubdirectoriesGained(row->second,
                                    directories.contains(row->first.second));
    }
    record.base->nlink = static_cast<uint32_t>(st->st_nlink);
    record.attr.nlink = static_cast<uint32_t>(links);
    return true;
  }

  void DropContent(Ino ino) {
    ExtentEdit edit{.ino = ino};
    for (auto row = tables_.extents.lower_bound({ino, 0});
         row != tables_.extents.end() && row->first.first == ino; ++row) {
      edit.before.push_back(row->second);
    }
    if (!edit.before.empty()) edits_.emplace_back(std::move(edit));
    DropXattrs(ino);
  }

  void DropXattrs(Ino ino) {
    for (auto row = tables_.xattrs.lower_bound({ino, ""});
         row != tables_.xattrs.end() && row->first.first == ino; ++row) {
      edits_.emplace_back(
          XattrEdit{ino, row->first.second, row->second, std::nullopt});
    }
  }

  Frozen& frozen_;
  const Selection& selection_;
  const Image& tables_;
  const PartCommit* const commit_;  ///< null: a discard
  Moves moves_;
  std::map<Ino, int> subdirectories_;  ///< that come back or go, by parent
  std::vector<Edit> edits_;
};

}  // namespace

Result<Change> PlanSettlement(Frozen& frozen, const Selection& selection,
                              const Image& tables, const PartCommit* commit) {
  Change change;
  change.op = commit != nullptr ? Op::kCommit : Op::kDiscard;
  change.edits = TRY(SettlePlanner(frozen, selection, tables, commit).Run());
  return change;
}

}  // namespace txfs
