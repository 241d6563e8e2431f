#include "fs/commit_plan.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

namespace txfs {
namespace {

/// A base file with few changed bytes is patched in place from here on, bytes.
constexpr uint64_t kPatchFrom = 64 << 20;

bool IsDevice(const Inode& inode) {
  return inode.attr().type == FileType::kCharDevice ||
         inode.attr().type == FileType::kBlockDevice;
}

size_t Depth(const std::string& path) {
  return static_cast<size_t>(std::ranges::count(path, '/'));
}

}  // namespace

uint32_t CommittedMode(const Inode& inode) {
  const uint32_t mode = inode.attr().mode;
  if (inode.IsDirectory()) return mode;
  const uint32_t had = inode.record.base ? inode.record.base->mode : 0;
  return mode & (~static_cast<uint32_t>(S_ISUID | S_ISGID) | had);
}

// --- conflicts -------------------------------------------------------------

namespace {

/// A base path for people: the root has a name, too.
std::string Shown(const std::string& path) { return path.empty() ? "." : path; }

/// Whether what stands in the base is still what the transaction saw.
bool Matches(const BaseOrigin& origin, const struct stat& st) {
  if (st.st_ino != origin.ino ||
      (st.st_mode & S_IFMT) != (origin.mode & S_IFMT)) {
    return false;
  }
  if (S_ISDIR(st.st_mode)) return true;
  return static_cast<uint64_t>(st.st_size) == origin.size &&
         Timestamp::From(st.st_mtim) == origin.mtime &&
         Timestamp::From(st.st_ctim) == origin.ctime;
}

/// Whether `path` is one more name of a base file that is known by another.
bool IsKnownLink(OverlayFilesystem::Frozen& frozen, const std::string& path) {
  const auto st = frozen.base.Stat(path);
  if (!st || S_ISDIR(st->st_mode) || st->st_nlink < 2) return false;
  const Inode* inode = frozen.tree.FindBaseFile(path, *st);
  return inode != nullptr && Matches(*inode->record.base, *st);
}

/// Names that the upper hides or takes, but that the base did not have then.
Status FindCreated(OverlayFilesystem::Frozen& frozen, const Inode& directory,
                   const std::set<std::string>& known,
                   std::vector<Conflict>& conflicts) {
  const std::string& base = directory.record.base->path;
  auto entries = frozen.base.List(base);
  if (!entries) return {};  // the directory itself is a conflict already
  for (const BaseEntry& entry : *entries) {
    const std::string path = JoinPath(base, entry.name);
    const auto slot = directory.slots.find(entry.name);
    const bool touched = slot != directory.slots.end() &&
                         slot->second.upper.kind != DentryKind::kAbsent;
    if (!touched && !directory.IsOrphan()) continue;
    if (known.contains(path)) continue;
    if (touched && IsKnownLink(frozen, path)) continue;
    conflicts.push_back({path, "created"});
  }
  return {};
}

}  // namespace

Result<std::vector<Conflict>> FindConflicts(OverlayFilesystem::Frozen& frozen) {
  std::vector<Conflict> conflicts;
  std::vector<const Inode*> directories;
  std::set<std::string> known;
  Status status;
  frozen.tree.ForEach([&](Inode& inode) {
    if (!status || !inode.upper || !inode.record.base) return;
    const BaseOrigin& origin = *inode.record.base;
    known.insert(origin.path);
    if (inode.IsDirectory()) directories.push_back(&inode);
    const auto st = frozen.base.Stat(origin.path);
    if (!st && st.error().code == ENOENT) {
      conflicts.push_back({Shown(origin.path), "deleted"});
    } else if (!st) {
      status = std::unexpected(st.error());
    } else if (!Matches(origin, *st)) {
      conflicts.push_back({Shown(origin.path), "changed"});
    }
  });
  TRY(std::move(status));
  for (const Inode* directory : directories) {
    TRY(FindCreated(frozen, *directory, known, conflicts));
  }
  std::ranges::sort(conflicts, {}, &Conflict::path);
  return conflicts;
}

// --- planning --------------------------------------------------------------

namespace {

/// Plans in phases; each appends to its own list, so that the order of steps
/// is readable in Finish.
class Planner {
 public:
  explicit Planner(OverlayFilesystem::Frozen& frozen) : frozen_(frozen) {}

  Result<CommitPlan> Run() {
    std::vector<Inode*> upper;
    frozen_.tree.ForEach([&](Inode& inode) {
      if (inode.upper) upper.push_back(&inode);
    });
    std::ranges::sort(upper, {}, [](const Inode* inode) { return inode->ino; });
    for (Inode* inode : upper) {
      if (inode->IsDirectory()) TRY(PlanNames(*inode));
    }
    for (Inode* inode : upper) TRY(PlanInode(*inode));
    for (Inode* inode : upper) TRY(PlanAttributes(*inode));
    return Finish();
  }

 private:
  static std::string StageName(const char* prefix, Ino ino) {
    return prefix + std::to_string(Raw(ino));
  }

  /// Base objects whose name goes away: detached, unless a whole directory
  /// takes them along.
  Status PlanNames(const Inode& directory) {
    const auto visible = frozen_.tree.VisiblePath(directory);
    if (directory.record.base && directory.record.base->dev != 0) {
      return RefuseOtherFilesystem(directory);
    }
    for (const auto& [name, slot] : directory.slots) {
      if (slot.upper.kind == DentryKind::kAbsent) continue;
      const Inode* child = slot.upper.kind == DentryKind::kInode
                               ? frozen_.tree.Find(slot.upper.ino)
                               : nullptr;
      const std::string place = JoinPath(visible.value_or(""), name);
      if (child != nullptr && visible) places_[child->ino].push_back(place);
      if (directory.record.base) {
        TRY(PlanBaseName(directory, name, child, place));
      }
    }
    return {};
  }

  /// Renames cannot cross into a filesystem mounted inside the workspace.
  static Status RefuseOtherFilesystem(const Inode& directory) {
    for (const auto& [name, slot] : directory.slots) {
      if (slot.upper.kind == DentryKind::kAbsent) continue;
      return Fail(EXDEV,
                  "cannot commit " +
                      JoinPath(directory.record.base->path, name) +
                      ", on another filesystem mounted inside the workspace",
                  "mount that filesystem as a workspace of its own");
    }
    return {};
  }

  Status PlanBaseName(const Inode& directory, const std::string& name,
                      const Inode* child, const std::string& place) {
    const std::string path = JoinPath(directory.record.base->path, name);
    const auto st = frozen_.base.Stat(path);
    if (!st && st.error().code == ENOENT) return {};
    if (!st) return std::unexpected(st.error());
    const Inode* object = S_ISDIR(st->st_mode)
                              ? frozen_.tree.FindBaseDirectory(path)
                              : frozen_.tree.FindBaseFile(path, *st);
    if (object != nullptr && object == child) {
      kept_[child->ino].push_back(place);  // renamed away and back
      return {};
    }
    const bool shared = !S_ISDIR(st->st_mode) && st->st_nlink > 1;
    const bool moves = object != nullptr && !object->IsOrphan() && !shared;
    // A directory that goes takes its content along. One of several names of
    // a file goes by itself: see CommitRunner::DropSharedNames.
    if (!moves && !shared && directory.IsOrphan()) return {};
    CommitStep step{
        .kind = StepKind::kDetach, .path = path, .base_ino = st->st_ino};
    step.stage = moves ? StageName("m", object->ino)
                       : "d" + std::to_string(detaches_.size());
    if (moves) moved_.insert(object->ino);
    detaches_.push_back(std::move(step));
    return {};
  }

  /// Where each inode's content comes from and which names it gets.
  Status PlanInode(const Inode& inode) {
    if (inode.IsOrphan() || inode.ino == kRootIno) return {};
    if (IsDevice(inode) && !inode.record.base) {
      for (const std::string& path : places_[inode.ino]) {
        plan_.withheld.push_back("device node not committed: " + path);
      }
      return {};
    }
    if (!inode.record.base) return PlanNew(inode);
    if (!inode.IsDirectory() && inode.record.base->nlink > 1) {
      return PlanShared(inode);
    }
    return PlanMovedOrKept(inode);
  }

  void Stage(const Inode& inode) {
    staged_.insert(inode.ino);
    plan_.staged.push_back({StageName("n", inode.ino), inode.ino});
  }

  void AddLinks(const std::string& from, const std::string& stage,
                const std::vector<std::string>& paths, size_t first) {
    for (size_t i = first; i < paths.size(); ++i) {
      links_.push_back({.kind = StepKind::kLink,
                        .path = paths[i],
                        .stage = stage,
                        .from = from});
    }
  }

  Status PlanNew(const Inode& inode) {
    const auto& paths = places_[inode.ino];
    if (paths.empty()) return {};
    Stage(inode);
    attaches_.push_back({.kind = StepKind::kAttach,
                         .path = paths.front(),
                         .stage = StageName("n", inode.ino)});
    AddLinks(paths.front(), "", paths, 1);
    return {};
  }

  /// A base file with several names keeps them: changed in place, never
  /// replaced.
  Status PlanShared(const Inode& inode) {
    const std::string& base = inode.record.base->path;
    if (ContentChanged(inode)) AddPatch(inode);
    const std::vector<std::string> fresh = FreshNames(inode);
    if (fresh.empty()) return {};
    const std::string stage = StageName("h", inode.ino);
    holds_.push_back({.kind = StepKind::kHold,
                      .path = base,
                      .stage = stage,
                      .base_ino = inode.record.base->ino});
    AddLinks("", stage, fresh, 0);
    return {};
  }

  Status PlanMovedOrKept(const Inode& inode) {
    const std::string& base = inode.record.base->path;
    const bool moved = moved_.contains(inode.ino);
    const std::vector<std::string> fresh = FreshNames(inode);
    bool replaced = false;
    if (ContentChanged(inode)) {
      replaced = inode.attr().size < kPatchFrom &&
                 inode.record.base->dev == 0 && CanKeepOwner(inode);
      if (replaced) {
        Stage(inode);
      } else {
        AddPatch(inode);
      }
    }
    if (moved) {
      if (fresh.empty()) return Fail(EIO, "plan commit of " + base);
      // A replaced one's old content stays in the stage.
      attaches_.push_back(
          {.kind = StepKind::kAttach,
           .path = fresh.front(),
           .stage = StageName(replaced ? "n" : "m", inode.ino)});
      AddLinks(fresh.front(), "", fresh, 1);
      return {};
    }
    auto place = frozen_.tree.VisibleBase(base);
    if (kept_.contains(inode.ino)) place = kept_[inode.ino].front();
    if (!place) return Fail(EIO, "plan commit of " + base);
    if (replaced) {
      exchanges_.push_back({.kind = StepKind::kExchange,
                            .path = *place,
                            .stage = StageName("n", inode.ino),
                            .ino = inode.ino});
      TRY(KeepDirectoryTimes(base));
    }
    AddLinks(*place, "", fresh, 0);
    return {};
  }

  /// An exchange touches the directory it happens in, of which the transaction
  /// may not have changed anything.
  Status KeepDirectoryTimes(const std::string& path) {
    const std::string parent(ParentPath(path));
    const Inode* directory = frozen_.tree.FindBaseDirectory(parent);
    if (directory != nullptr && directory->upper) return {};
    const auto place = frozen_.tree.VisibleBase(parent);
    if (!place || !untouched_.insert(parent).second) return {};
    directories_.push_back({.kind = StepKind::kAttributes,
                            .path = *place,
                            .attr = AttrOf(TRY(frozen_.base.Stat(parent)))});
    return {};
  }

  /// Names the inode has in the overlay but not in the base.
  std::vector<std::string> FreshNames(const Inode& inode) {
    const std::vector<std::string>& kept = kept_[inode.ino];
    std::vector<std::string> fresh = places_[inode.ino];
    std::erase_if(fresh, [&](const std::string& path) {
      return std::ranges::find(kept, path) != kept.end();
    });
    if (kept.empty()) kept_.erase(inode.ino);
    return fresh;
  }

  /// Whether a new file in the place of the old one can have its owner. Where
  /// not, the old one is written to, as the kernel allowed.
  static bool CanKeepOwner(const Inode& inode) {
    return ::geteuid() == 0 || inode.record.base->uid == ::geteuid();
  }

  static bool ContentChanged(const Inode& inode) {
    return inode.attr().type == FileType::kRegular &&
           (!inode.extents.empty() ||
            inode.attr().size != inode.record.base->size ||
            inode.attr().base_limit != inode.record.base->size);
  }

  void AddPatch(const Inode& inode) {
    patches_.push_back({.kind = StepKind::kPatch,
                        .path = inode.record.base->path,
                        .ino = inode.ino,
                        .base_ino = inode.record.base->ino,
                        .attr = inode.attr()});
  }

  Status PlanAttributes(const Inode& inode) {
    if (inode.IsOrphan()) return {};
    if (IsDevice(inode) && !inode.record.base) return {};
    CommitStep step{.kind = StepKind::kAttributes, .attr = inode.attr()};
    const auto& places = places_[inode.ino];
    if (!places.empty()) {
      step.path = places.front();
    } else if (const auto path = frozen_.tree.VisiblePath(inode)) {
      step.path = *path;
    } else {
      return {};
    }
    step.attr.mode = CommittedMode(inode);
    if (step.attr.mode != inode.attr().mode) {
      plan_.withheld.push_back("set-user-ID or set-group-ID not committed: " +
                               step.path);
    }
    step.set_xattrs = inode.attr().xattrs_owned || !inode.record.base;
    step.xattrs.insert(inode.xattrs.begin(), inode.xattrs.end());
    if (!step.set_xattrs && staged_.contains(inode.ino)) {
      step.xattrs = TRY(frozen_.BaseXattrs(inode.record.base->path));
      step.set_xattrs = true;
    }
    (inode.IsDirectory() ? directories_ : files_).push_back(std::move(step));
    return {};
  }

  CommitPlan Finish() {
    // Within one depth the order does not matter, but let it be one.
    const auto by_depth = [](const CommitStep& step) {
      return std::pair(Depth(step.path), std::string_view(step.path));
    };
    std::ranges::sort(detaches_, std::ranges::greater(), by_depth);
    std::ranges::sort(attaches_, std::ranges::less(), by_depth);
    std::ranges::sort(directories_, std::ranges::greater(), by_depth);
    for (auto* phase : {&patches_, &holds_, &detaches_, &attaches_, &exchanges_,
                        &links_, &files_, &directories_}) {
      std::ranges::move(*phase, std::back_inserter(plan_.steps));
    }
    return std::move(plan_);
  }

  OverlayFilesystem::Frozen& frozen_;
  CommitPlan plan_;
  std::map<Ino, std::vector<std::string>> places_;  // overlay paths, upper only
  std::set<Ino> staged_;
  std::set<Ino> moved_;                           // detached, to be attached
  std::map<Ino, std::vector<std::string>> kept_;  // of those, in the base, too
  std::set<std::string> untouched_;  // directories whose times are kept
  std::vector<CommitStep> patches_, holds_, detaches_, attaches_, exchanges_,
      links_, files_, directories_;
};

}  // namespace

Result<CommitPlan> PlanCommit(OverlayFilesystem::Frozen& frozen) {
  return Planner(frozen).Run();
}

// --- bytes -----------------------------------------------------------------

Bytes EncodeSteps(const std::vector<CommitStep>& steps) {
  Bytes out;
  Encoder encoder(out);
  encoder.Put(static_cast<uint32_t>(steps.size()));
  for (const CommitStep& step : steps) {
    encoder.Put(static_cast<uint8_t>(step.kind));
    encoder.PutString(step.path);
    encoder.PutString(step.stage);
    encoder.PutString(step.from);
    encoder.Put(Raw(step.ino));
    encoder.Put(step.base_ino);
    EncodeAttr(step.attr, encoder);
    encoder.Put(static_cast<uint8_t>(step.set_xattrs));
    encoder.Put(static_cast<uint32_t>(step.xattrs.size()));
    for (const auto& [name, value] : step.xattrs) {
      encoder.PutString(name);
      encoder.PutString(value);
    }
  }
  return out;
}

Result<std::vector<CommitStep>> DecodeSteps(ByteSpan in) {
  Decoder decoder(in);
  std::vector<CommitStep> steps;
  const auto count = decoder.Get<uint32_t>();
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    CommitStep& step = steps.emplace_back();
    const auto kind = decoder.Get<uint8_t>();
    if (kind >= 1 && kind <= 7) {
      step.kind = static_cast<StepKind>(kind);
    } else {
      decoder.SetBad();
    }
    step.path = decoder.GetString();
    step.stage = decoder.GetString();
    step.from = decoder.GetString();
    step.ino = Ino{decoder.Get<uint64_t>()};
    step.base_ino = decoder.Get<uint64_t>();
    step.attr = DecodeAttr(decoder);
    step.set_xattrs = decoder.Get<uint8_t>() != 0;
    const auto xattrs = decoder.Get<uint32_t>();
    for (uint32_t x = 0; x < xattrs && decoder.ok(); ++x) {
      const std::string name(decoder.GetString());
      step.xattrs[name] = decoder.GetString();
    }
  }
  if (!decoder.ok() || decoder.remaining() != 0) {
    return Fail(EBADMSG, "commit plan");
  }
  return steps;
}

}  // namespace txfs
