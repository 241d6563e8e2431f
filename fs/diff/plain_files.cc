#include "fs/diff/plain_files.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "fs/overlay/overlay.h"
#include "fs/overlay/touched_inodes.h"
#include "journal/support/parallel.h"

namespace txfs {
namespace {

/// How many inodes are looked at while operations wait, and how many looks at
/// the base are made in parallel.
constexpr size_t kPart = 128;
constexpr size_t kAtOnce = 4096;

/// Whether the name of `link` in `directory` leads to `ino` in the journal.
bool IsUpperName(const Inode& directory, const Inode::Link& link, Ino ino) {
  const Slot* slot = directory.UpperSlot(link.name);
  return slot != nullptr && slot->upper.kind == DentryKind::kInode &&
         slot->upper.ino == ino;
}

/// Whether `path` is `name` in `directory`.
bool IsJoined(std::string_view path, std::string_view directory,
              std::string_view name) {
  return BaseName(path) == name && ParentPath(path) == directory;
}

/// A file that is plain if the base is as it has to be.
struct Found {
  PlainFile file;
  BaseOrigin origin;  ///< of a new file: only the path
  bool is_new = false;
  bool is_settled = false;  ///< the base is so
};

class PlainFinder {
 public:
  PlainFinder(const Tree& tree, const BaseDirectory& base,
              std::shared_ptr<Preimages> preimages, Wanted wanted)
      : tree_(tree),
        base_(base),
        wanted_(wanted),
        preimages_(std::move(preimages)) {
    // Directories that were opened lately may have been moved since.
    base_.DropCache();
  }

  /// None: it is not plain. Requires the lock of the tree.
  std::optional<Found> Look(const Inode& inode) {
    Found found{.file = {.ino = inode.ino}};
    if (IsShownAtItsPlace(inode)) {
      found.origin = *inode.record.base;
    } else if (auto path = PathOfNew(inode)) {
      found.origin.path = *std::move(path);
      found.is_new = true;
    } else {
      return std::nullopt;
    }
    if (wanted_ == Wanted::kNothing) return found;
    PlainFile& file = found.file;
    file.is_change = wanted_ == Wanted::kCount && IsKnownChange(inode, found);
    if (file.is_change) return found;
    file.candidate = found.is_new
                         ? ChangeCandidate::OfNew(found.origin.path, inode)
                         : ChangeCandidate::OfChanged(inode, preimages_.get());
    return found;
  }

  /// Looks at the base. Requires no lock; thread-safe.
  void Settle(Found& found) const {
    const auto st = base_.Stat(found.origin.path);
    if (found.is_new) {
      found.is_settled = !st && st.error().code == ENOENT;
      return;
    }
    found.is_settled =
        st && tree_.OriginOf(found.origin.path, *st) == found.origin;
    if (found.is_settled && found.file.candidate) {
      found.file.candidate->change.before =
          SideOf({found.origin.path, *st, {}});
    }
  }

 private:
  bool IsShownAtItsPlace(const Inode& inode) {
    const auto& origin = inode.record.base;
    return origin && inode.attr().type == FileType::kRegular &&
           !inode.IsOrphan() && !inode.lost && origin->nlink == 1 &&
           HasBaseName(inode) && PlaceOf(inode.links.front().parent);
  }

  [[nodiscard]] bool HasBaseName(const Inode& inode) const {
    if (inode.links.size() != 1) return false;
    const Inode::Link& link = inode.links.front();
    const Inode* parent = tree_.Find(link.parent);
    if (parent == nullptr || !parent->record.base) return false;
    return parent->CachedChild(link.name) == &inode &&
           IsJoined(inode.record.base->path, parent->record.base->path,
                    link.name);
  }

  [[nodiscard]] bool HasOneNewName(const Inode& inode) const {
    if (inode.record.base || inode.links.size() != 1) return false;
    const Inode::Link& link = inode.links.front();
    const Inode* parent = tree_.Find(link.parent);
    return parent != nullptr && IsUpperName(*parent, link, inode.ino);
  }

  std::optional<std::string> PathOfNew(const Inode& inode) {
    const bool is_new =
        !inode.IsDirectory() && !inode.IsOrphan() && HasOneNewName(inode);
    if (!is_new) return std::nullopt;
    const Inode::Link& link = inode.links.front();
    const std::string* place = PlaceOf(link.parent);
    if (place == nullptr) return std::nullopt;
    return JoinPath(*place, link.name);
  }

  /// The path of a directory if it, and each above it, is one of the base that
  /// has its base name, or a new one. Else null. Valid until the next call.
  const std::string* PlaceOf(Ino directory) {
    // No recursion: a tree may be deeper than the stack.
    std::vector<const Inode*> way;
    std::optional<std::string> place;
    for (Ino at = directory;;) {
      if (at == kRootIno) {
        place = "";
        break;
      }
      const auto known = places_.find(at);
      if (known != places_.end()) {
        place = known->second;
        break;
      }
      const Inode* inode = tree_.Find(at);
      if (inode == nullptr) break;
      way.push_back(inode);
      const bool is_at_place =
          !inode->IsOrphan() && !inode->lost &&
          (inode->record.base ? HasBaseName(*inode) : HasOneNewName(*inode));
      if (!is_at_place) break;
      at = inode->links.front().parent;
    }
    while (!way.empty()) {
      const Inode& inode = *way.back();
      way.pop_back();
      if (place) place = JoinPath(*place, inode.links.front().name);
      places_[inode.ino] = place;
    }
    const auto found = places_.try_emplace(directory, std::move(place)).first;
    return found->second ? &*found->second : nullptr;
  }

  /// Whether the file differs from the noted one. False: it may.
  [[nodiscard]] bool IsKnownChange(const Inode& inode,
                                   const Found& found) const {
    if (found.is_new) return true;
    const Attr& attr = inode.attr();
    const BaseOrigin& origin = found.origin;
    return attr.mode != (origin.mode & 07777) || attr.uid != origin.uid ||
           attr.gid != origin.gid || attr.size != origin.size ||
           HasOtherChecksum(inode, preimages_.get());
  }

  const Tree& tree_;
  const BaseDirectory& base_;
  const Wanted wanted_;
  const std::shared_ptr<Preimages> preimages_;
  /// Directories; none: not at its place.
  std::unordered_map<Ino, std::optional<std::string>> places_;
};

}  // namespace

bool HasOtherChecksum(const Inode& inode, Preimages* preimages) {
  if (preimages == nullptr || inode.extents.empty()) return false;
  const Extent& extent = inode.extents.begin()->second;
  const ContentRef& content = extent.content;
  const bool is_whole = content.segment != 0 && extent.offset == 0 &&
                        extent.length == inode.attr().size &&
                        content.delta == 0 &&
                        content.record_length == extent.length;
  if (!is_whole) return false;
  const auto before =
      preimages->FindChecksum(Fingerprint::Of(*inode.record.base));
  return before && *before != content.checksum;
}

// --- while operations run --------------------------------------------------

PlainSurvey::PlainSurvey(OverlayFilesystem& filesystem, Wanted wanted)
    : wanted_(wanted) {
  std::optional<PlainFinder> finder;
  filesystem.WhileFrozen([&](Frozen& frozen) {
    touched_ = frozen.Watch();
    finder.emplace(frozen.tree, frozen.base, frozen.origins.preimages(),
                   wanted);
  });
  // What comes between two parts, or moves there, is left over.
  size_t next = 0;
  std::vector<Found> found;
  found.reserve(kAtOnce + kPart);
  for (bool is_done = false; !is_done; found.clear()) {
    while (!is_done && found.size() < kAtOnce) {
      is_done = filesystem.WhileShared([&](const Tree& tree) {
        const size_t end = std::min(next + kPart, tree.upper().size());
        for (; next < end; ++next) {
          auto one = finder->Look(*tree.upper()[next]);
          if (one) found.push_back(std::move(*one));
        }
        return next >= tree.upper().size();
      });
    }
    InParallel(found.size(), [&](size_t i) { finder->Settle(found[i]); });
    for (Found& one : found) {
      if (one.is_settled) settled_.push_back(std::move(one.file));
    }
  }
}

// --- in a freeze -----------------------------------------------------------

PlainFiles PlainFiles::Find(Frozen& frozen, Wanted wanted) {
  PlainFiles files;
  files.is_plain.resize(frozen.tree.upper().size());
  files.FindRest(frozen, wanted);
  return files;
}

PlainFiles PlainFiles::Find(Frozen& frozen, PlainSurvey& survey) {
  PlainFiles files;
  files.is_plain.resize(frozen.tree.upper().size());
  if (frozen.IsComplete(*survey.touched_)) files.TakeSurveyed(frozen, survey);
  files.FindRest(frozen, survey.wanted_);
  return files;
}

void PlainFiles::Take(PlainFile file, size_t upper_at) {
  is_plain[upper_at] = true;
  if (file.is_change) ++changes;
  if (file.candidate) list.Add(std::move(file.candidate));
}

void PlainFiles::TakeSurveyed(const Frozen& frozen, PlainSurvey& survey) {
  for (PlainFile& file : survey.settled_) {
    if (survey.touched_->Has(file.ino)) continue;
    const Inode* inode = frozen.tree.Find(file.ino);
    const bool is_there = inode != nullptr && inode->upper;
    if (is_there) Take(std::move(file), inode->upper_at);
  }
  survey.settled_.clear();
}

void PlainFiles::FindRest(Frozen& frozen, Wanted wanted) {
  PlainFinder finder(frozen.tree, frozen.base, frozen.origins.preimages(),
                     wanted);
  std::vector<std::pair<Inode*, Found>> found;
  const auto settle = [&] {
    // Nobody gets an answer meanwhile.
    InParallel(found.size(), [&](size_t i) { finder.Settle(found[i].second); });
    for (auto& [inode, one] : found) {
      if (one.is_settled) {
        Take(std::move(one.file), inode->upper_at);
      } else {
        others.push_back(inode);
      }
    }
    found.clear();
  };
  frozen.tree.ForEachUpper([&](Inode& inode) {
    if (is_plain[inode.upper_at]) return;
    if (auto one = finder.Look(inode)) {
      found.emplace_back(&inode, std::move(*one));
    } else {
      others.push_back(&inode);
    }
    if (found.size() == kAtOnce) settle();
  });
  settle();
}

}  // namespace txfs
