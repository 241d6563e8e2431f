#include "fs/planning/conflicts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "fs/origin/preimages.h"
#include "fs/tree/own_xattrs.h"
#include "journal/support/pieces.h"

namespace txfs {
namespace {

std::string_view NameOf(TheirChange change) {
  switch (change) {
    case TheirChange::kTouched:
      return "touched";
    case TheirChange::kAttributes:
      return "attributes changed";
    case TheirChange::kContent:
      return "changed";
    case TheirChange::kType:
      return "type changed";
    case TheirChange::kDeleted:
      return "deleted";
    case TheirChange::kCreated:
      return "created";
  }
  return "";
}

std::string_view NameOf(OurChange change) {
  switch (change) {
    case OurChange::kNothing:
      return "touched";
    case OurChange::kEntries:
      return "entries changed";
    case OurChange::kAttributes:
      return "attributes changed";
    case OurChange::kLinked:
      return "linked";
    case OurChange::kRenamed:
      return "renamed";
    case OurChange::kModified:
      return "modified";
    case OurChange::kReplaced:
      return "replaced";
    case OurChange::kDeleted:
      return "deleted";
    case OurChange::kCreated:
      return "created";
  }
  return "";
}

bool SameAttributes(const BaseOrigin& origin, const struct stat& st) {
  return origin.mode == st.st_mode && origin.uid == st.st_uid &&
         origin.gid == st.st_gid;
}

/// Whether nobody did anything to the object since it was first touched.
bool Matches(const Tree& tree, const Inode& inode, const struct stat& st) {
  const BaseOrigin& origin = *inode.record.base;
  if (!tree.IsOrigin(inode, st)) return false;
  // Names in a directory come and go without touching the others.
  if (S_ISDIR(st.st_mode)) return SameAttributes(origin, st);
  return origin.mode == st.st_mode &&
         static_cast<uint64_t>(st.st_size) == origin.size &&
         Timestamp::From(st.st_mtim) == origin.mtime &&
         Timestamp::From(st.st_ctim) == origin.ctime;
}

/// What the transaction hides or takes in the base's directories.
struct HiddenNames {
  /// How many of the base's, for each file of several names.
  std::map<Ino, uint64_t> names;
  /// Of some that the transaction took, the base has nothing: they are new, or
  /// others took them, too.
  bool misses_some = false;
};

class DriftFinder {
 public:
  DriftFinder(Frozen& frozen, std::vector<Conflict>* closed,
              const std::vector<Inode*>& among)
      : frozen_(frozen), closed_(closed), among_(among) {}

  Result<std::vector<Drift>> Run() {
    // Directories that were opened lately may have been moved since.
    frozen_.base.DropCache();
    std::vector<const Inode*> inodes;
    for (const Inode* inode : among_) {
      if (!inode->record.base) continue;
      inodes.push_back(inode);
      known_.insert(inode->record.base->path);
      if (!inode->IsDirectory() && inode->record.base->nlink > 1) {
        shared_.emplace(inode->record.base->ino, inode);
      }
    }
    for (const Inode* inode : inodes) TRY(LookAt(*inode));
    for (const Inode* inode : inodes) {
      if (inode->IsDirectory()) FindCreated(*inode);
    }
    if (!drifts_.empty()) frozen_.ExpectMoved();
    std::ranges::sort(drifts_, {}, &Drift::path);
    return std::move(drifts_);
  }

 private:
  Status LookAt(const Inode& inode) {
    const BaseOrigin& origin = *inode.record.base;
    std::string path = origin.path;
    auto st = frozen_.base.Stat(path);
    if (!st && st.error().code == EACCES && closed_ != nullptr) {
      closed_->push_back({ShownPath(path), kClosed, {}, kClosedNote});
      return {};
    }
    if (!st && st.error().code != ENOENT) return std::unexpected(st.error());
    const bool matches = st && Matches(frozen_.tree, inode, *st);
    // The times of directories, which would tell, count for nothing.
    if (matches && !(inode.IsDirectory() && MayLoseXattrs(inode, path, *st))) {
      return {};
    }
    Drift drift{.ino = inode.ino};
    if (!st || !frozen_.tree.IsOrigin(inode, *st)) {
      auto other = OtherName(inode);
      const bool is_shown = !inode.IsOrphan() &&
                            frozen_.tree.SlotAt(path) == nullptr &&
                            !inode.IsUnchanged();
      if (other && st && is_shown) {
        // It shows ours where others have another file.
        drift.another = true;
      } else if (other) {
        // What has its old name now, if anything, came since.
        known_.erase(path);
        path = *other;
        st = frozen_.base.Stat(path);
      } else {
        drift.nameless = IsNameless(inode);
      }
    }
    drift.path = path;
    if (st) drift.now = *st;
    if (st) drift.nameless = drift.nameless || IsNowhere(inode, path, *st);
    drift.another = drift.another || (st && IsAnother(inode, path, *st));
    drift.theirs = TheirChange::kDeleted;
    if (st) drift.theirs = TheirsOf(inode, drift);
    drift.ours = OursOf(inode, drift);
    drift.conflict = IsConflict(inode, drift);
    drifts_.push_back(std::move(drift));
    return {};
  }

  /// A base name, other than the one in its record, of a file with several.
  std::optional<std::string> OtherName(const Inode& inode) {
    if (inode.IsDirectory() || inode.record.base->nlink < 2) return {};
    for (const Inode::Link& link : inode.links) {
      const Inode* parent = frozen_.tree.Find(link.parent);
      if (parent == nullptr || !parent->record.base) continue;
      std::string path = JoinPath(parent->record.base->path, link.name);
      const auto st = frozen_.base.Stat(path);
      if (st && frozen_.tree.IsOrigin(inode, *st)) return path;
    }
    return {};
  }

  // --- their side

  TheirChange TheirsOf(const Inode& inode, const Drift& drift) {
    const BaseOrigin& origin = *inode.record.base;
    const std::string& path = drift.path;
    const struct stat& st = drift.now;
    if ((st.st_mode & S_IFMT) != (origin.mode & S_IFMT)) {
      return TheirChange::kType;
    }
    // Whatever its content: it is not to be written to.
    if (drift.another) return TheirChange::kContent;
    if (!HasSameContent(inode, path, st)) return TheirChange::kContent;
    if (!SameAttributes(origin, st)) return TheirChange::kAttributes;
    return MayLoseXattrs(inode, path, st) ? TheirChange::kAttributes
                                          : TheirChange::kTouched;
  }

  /// Of user.* attributes nothing is known but that there may be others now.
  bool MayLoseXattrs(const Inode& inode, const std::string& path,
                     const struct stat& st) {
    if (S_ISDIR(st.st_mode)) {
      return inode.attr().xattrs_owned &&
             XattrsClash(inode,
                         frozen_.origins.BaseXattrs(path).value_or(XattrMap()));
    }
    if (inode.attr().xattrs_owned) return true;
    // Elsewhere they stay with the file.
    if (!inode.IsOrphan()) return false;
    return !OnlyLinkCountDiffers(inode, st) &&
           HasTrackedXattrs(frozen_.base, path);
  }

  /// Whether its content seems to be what it was.
  bool SeemsUnwritten(const Inode& inode, const struct stat& st) {
    const BaseOrigin& origin = *inode.record.base;
    return frozen_.tree.IsOrigin(inode, st) &&
           static_cast<uint64_t>(st.st_size) == origin.size &&
           origin.mtime == Timestamp::From(st.st_mtim);
  }

  /// Whether its content is what it was, or stays in any case: with that, the
  /// doubt is not about our bytes.
  bool KeepsContent(const Inode& inode, const struct stat& st) {
    if (inode.ContentChanged() || !SeemsUnwritten(inode, st)) return false;
    return !inode.IsOrphan() || OnlyLinkCountDiffers(inode, st) ||
           OnlyAttributesDiffer(inode, st);
  }

  /// Whether that it has more or fewer names explains that it was touched.
  bool OnlyLinkCountDiffers(const Inode& inode, const struct stat& st) {
    return SeemsUnwritten(inode, st) && inode.record.base->nlink != st.st_nlink;
  }

  /// Whether its mode or owner explain that it was touched.
  bool OnlyAttributesDiffer(const Inode& inode, const struct stat& st) {
    return SeemsUnwritten(inode, st) && !SameAttributes(*inode.record.base, st);
  }

  bool HasSameContent(const Inode& inode, const std::string& path,
                      const struct stat& st) {
    const BaseOrigin& origin = *inode.record.base;
    if (S_ISDIR(st.st_mode)) return frozen_.tree.IsOrigin(inode, st);
    if (S_ISLNK(st.st_mode)) {
      const auto target = frozen_.base.ReadLink(path);
      return target && *target == inode.record.symlink();
    }
    if (!S_ISREG(st.st_mode)) return true;
    if (static_cast<uint64_t>(st.st_size) != origin.size) return false;
    std::optional<ContentHash> hash;
    if (const auto preimages = frozen_.origins.preimages()) {
      hash = preimages->FindHash(Fingerprint::Of(origin));
    }
    // The doubt is for a conflict where our bytes would be mixed with theirs.
    if (!hash) return KeepsContent(inode, st);
    const auto fd = frozen_.base.OpenFile(path);
    if (!fd) return false;
    const auto now = HashOfFile((*fd)->get(), origin.size);
    return now && *now == *hash;
  }

  // --- our side

  /// `at_path`: who has the name now.
  OurChange OursOf(const Inode& inode, Drift& drift) {
    Ino& at_path = drift.at_path;
    const Slot* slot = frozen_.tree.SlotAt(drift.path);
    if (slot != nullptr && slot->upper.kind == DentryKind::kInode) {
      at_path = slot->upper.ino;
    }
    const bool same = !inode.ContentChanged() && !inode.AttributesChanged();
    if (inode.IsOrphan() || (drift.nameless && same)) {
      return at_path == kNoIno ? OurChange::kDeleted : OurChange::kReplaced;
    }
    const Attr& attr = inode.attr();
    const BaseOrigin& origin = *inode.record.base;
    if (inode.ContentChanged()) return OurChange::kModified;
    if (slot != nullptr && at_path != inode.ino) return OurChange::kRenamed;
    if (inode.AttributesChanged()) return OurChange::kAttributes;
    if (inode.IsDirectory()) return OurChange::kEntries;
    if (attr.nlink > origin.nlink) return OurChange::kLinked;
    if (frozen_.tree.UpperNames(inode) != 0) return OurChange::kRenamed;
    return attr.mtime == origin.mtime ? OurChange::kNothing
                                      : OurChange::kAttributes;
  }

  bool IsNameless(const Inode& inode) {
    return !inode.IsDirectory() && !inode.IsOrphan() && inode.links.empty() &&
           frozen_.tree.SlotAt(inode.record.base->path) != nullptr;
  }

  /// A file that has the name `path` in the base, which the transaction took
  /// away: whether nothing known leads to it when both have their way.
  bool IsNowhere(const Inode& inode, const std::string& path,
                 const struct stat& st) {
    if (inode.IsDirectory() || inode.IsOrphan()) return false;
    if (inode.record.base->nlink < 2 || frozen_.tree.SlotAt(path) == nullptr)
      return false;
    if (frozen_.tree.UpperNames(inode) != 0 || OtherName(inode)) return false;
    const bool same = !inode.ContentChanged() && !inode.AttributesChanged();
    return same || st.st_nlink == 1 || !inode.links.empty();
  }

  static bool HasEntries(const Inode& directory) {
    return std::ranges::any_of(directory.names->slots, [](const auto& slot) {
      return slot.second.upper.kind == DentryKind::kInode;
    });
  }

  // --- both

  static bool IsConflict(const Inode& inode, const Drift& drift) {
    const bool gone =
        drift.ours == OurChange::kDeleted || drift.ours == OurChange::kReplaced;
    if (drift.nameless && !gone) return true;
    switch (drift.theirs) {
      case TheirChange::kTouched:
        return false;
      case TheirChange::kDeleted:
        if (drift.ours == OurChange::kEntries) return HasEntries(inode);
        return drift.ours != OurChange::kDeleted &&
               drift.ours != OurChange::kNothing;
      case TheirChange::kContent:
        return drift.another || (drift.ours != OurChange::kNothing &&
                                 drift.ours != OurChange::kEntries);
      case TheirChange::kAttributes:
        return IsAttributeConflict(inode, drift);
      case TheirChange::kType:
      case TheirChange::kCreated:
        return true;
    }
    return true;
  }

  static bool IsAttributeConflict(const Inode& inode, const Drift& drift) {
    if (drift.ours == OurChange::kNothing) return false;
    const Attr& attr = inode.attr();
    const bool same = attr.mode == (drift.now.st_mode & 07777) &&
                      attr.uid == drift.now.st_uid &&
                      attr.gid == drift.now.st_gid && !attr.xattrs_owned;
    if (same && !inode.IsOrphan()) return false;
    // Where a directory is and what is in it are other things than its mode.
    return !inode.IsDirectory() || inode.IsOrphan() ||
           inode.AttributesChanged();
  }

  /// Names that the upper hides or takes, but that the base did not have then.
  void FindCreated(const Inode& directory) {
    const std::string& base = directory.record.base->path;
    const auto entries = frozen_.base.List(base);
    if (!entries) return;  // the directory itself is drift already
    for (const BaseEntry& entry : *entries) {
      const std::string path = JoinPath(base, entry.name);
      const Slot* slot = directory.UpperSlot(entry.name);
      if (slot == nullptr && !directory.IsOrphan()) continue;
      if (known_.contains(path)) continue;
      if (slot != nullptr && IsKnownLink(path, *slot)) continue;
      Drift drift{.path = path,
                  .theirs = TheirChange::kCreated,
                  .ours = OurChange::kDeleted,
                  .conflict = true};
      if (slot != nullptr && slot->upper.kind == DentryKind::kInode) {
        drift.ours = OurChange::kCreated;
        drift.at_path = slot->upper.ino;
      }
      if (const auto st = frozen_.base.Stat(path)) drift.now = *st;
      drifts_.push_back(std::move(drift));
    }
  }

  /// Whether others wrote to a file that is deleted here, `st`, and took away
  /// the name by which it is noted: nothing but another name tells then.
  bool IsWrittenHere(const Inode& inode, const struct stat& st) {
    if (!inode.IsOrphan() || SeemsUnwritten(inode, st)) return false;
    const auto noted = frozen_.base.Stat(inode.record.base->path);
    return !noted || !frozen_.tree.IsOrigin(inode, *noted);
  }

  /// Whether `path` is one more name of a base file that is known by another.
  bool IsKnownLink(const std::string& path, const Slot& slot) {
    const auto st = frozen_.base.Stat(path);
    if (!st || S_ISDIR(st->st_mode)) return false;
    // Only what was there is hidden: it had this name already.
    if (slot.upper.kind == DentryKind::kWhiteout) {
      if (const Inode* shared = SharedAt(*st))
        return !IsWrittenHere(*shared, *st);
    }
    const Inode* inode = UnchangedSharedAt(*st);
    if (inode == nullptr || MayHaveMoved(*inode, *st)) return false;
    // More than the transaction took away: some of them came since.
    return Hidden().names[inode->ino] <= TakenNames(*inode);
  }

  /// Whether others may have given the file another name for one of those that
  /// the transaction took away: to rename and to link changes the ctime.
  bool MayHaveMoved(const Inode& inode, const struct stat& st) {
    const BaseOrigin& origin = *inode.record.base;
    if (Timestamp::From(st.st_ctim) == origin.ctime) return false;
    return st.st_nlink != origin.nlink || Hidden().misses_some;
  }

  /// Whether `st`, found where `inode` was, is of another file, which is known
  /// here or has other names. No two inodes may be one object, and what was
  /// written to one file is not for another.
  bool IsAnother(const Inode& inode, const std::string& path,
                 const struct stat& st) const {
    if (inode.IsDirectory() || inode.IsOrphan() ||
        frozen_.tree.IsOrigin(inode, st)) {
      return false;
    }
    return st.st_nlink > 1 || frozen_.tree.IsAnother(inode, path, st);
  }

  /// The upper file of several names that `st` is of.
  const Inode* SharedAt(const struct stat& st) const {
    const auto [first, last] = shared_.equal_range(st.st_ino);
    const auto found = std::find_if(first, last, [&](const auto& entry) {
      return frozen_.tree.IsOrigin(*entry.second, st);
    });
    return found == last ? nullptr : found->second;
  }

  /// The same, unless others wrote to it: it may be another one by now.
  const Inode* UnchangedSharedAt(const struct stat& st) const {
    const Inode* inode = SharedAt(st);
    if (inode == nullptr) return nullptr;
    const BaseOrigin& origin = *inode->record.base;
    const bool same = static_cast<uint64_t>(st.st_size) == origin.size &&
                      Timestamp::From(st.st_mtim) == origin.mtime;
    return same ? inode : nullptr;
  }

  /// How many names that the file had in the base the transaction took away.
  uint64_t TakenNames(const Inode& inode) const {
    const uint64_t names =
        uint64_t{inode.record.base->nlink} + frozen_.tree.UpperNames(inode);
    return names - std::min<uint64_t>(names, inode.attr().nlink);
  }

  HiddenNames& Hidden() {
    if (hidden_) return *hidden_;
    hidden_.emplace();
    frozen_.tree.ForEachUpper([&](const Inode& directory) {
      if (!directory.IsDirectory() || !directory.record.base) return;
      for (const auto& [name, slot] : directory.names->slots) {
        if (!slot.IsUpper()) continue;
        const auto st =
            frozen_.base.Stat(JoinPath(directory.record.base->path, name));
        if (!st) hidden_->misses_some = true;
        if (!st || S_ISDIR(st->st_mode)) continue;
        if (const Inode* inode = UnchangedSharedAt(*st)) {
          ++hidden_->names[inode->ino];
        }
      }
    });
    return *hidden_;
  }

  Frozen& frozen_;
  std::vector<Conflict>* const closed_;
  const std::vector<Inode*>& among_;
  std::set<std::string> known_;  ///< base paths of upper inodes
  /// Upper files of several base names, by the base's inode number.
  std::unordered_multimap<uint64_t, const Inode*> shared_;
  std::optional<HiddenNames> hidden_;
  std::vector<Drift> drifts_;
};

}  // namespace

Conflict Drift::Describe() const {
  return {ShownPath(path),
          std::string(NameOf(theirs)),
          std::string(NameOf(ours)),
          {}};
}

Result<std::vector<Drift>> FindDrift(Frozen& frozen,
                                     std::vector<Conflict>* closed,
                                     const std::vector<Inode*>* among) {
  return DriftFinder(frozen, closed,
                     among == nullptr ? frozen.tree.upper() : *among)
      .Run();
}

std::vector<Conflict> ConflictsIn(const std::vector<Drift>& drifts) {
  std::vector<Conflict> conflicts;
  for (const Drift& drift : drifts) {
    if (drift.conflict) conflicts.push_back(drift.Describe());
  }
  return conflicts;
}

}  // namespace txfs
