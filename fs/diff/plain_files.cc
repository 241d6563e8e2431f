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

/// How many inodes are looked at while operations wait, and how many files are
/// gathered before the base is looked at.
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
  /// Of the content, if another one in the base shows that this is a change.
  std::optional<uint64_t> checksum;
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
    if (inode.record.base) return LookAtChanged(inode);
    // There is nothing to follow at a new file.
    if (wanted_ == Wanted::kNothing) return std::nullopt;
    return LookAtNew(inode);
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
    if (!found.is_settled || !found.file.candidate) return;
    ChangeCandidate& candidate = *found.file.candidate;
    candidate.change.before = SideOf({found.origin.path, *st, {}});
    const bool is_known =
        found.checksum &&
        HasOtherChecksum(preimages_.get(), found.origin, *found.checksum);
    if (!is_known) return;
    candidate.compare = false;
    candidate.change.content = true;
    if (wanted_ == Wanted::kCount) Count(found.file);
  }

 private:
  static void Count(PlainFile& file) {
    file.is_change = true;
    file.candidate.reset();
  }

  std::optional<Found> LookAtChanged(const Inode& inode) {
    const BaseOrigin& origin = *inode.record.base;
    const bool is_plain = inode.attr().type == FileType::kRegular &&
                          !inode.IsOrphan() && !inode.lost &&
                          origin.nlink == 1 && IsUnderBaseName(inode) &&
                          IsAtPlace(inode.links.front().parent);
    if (!is_plain) return std::nullopt;
    Found found{.file = {.ino = inode.ino}, .origin = origin};
    if (wanted_ == Wanted::kNothing) return found;
    const auto differs = Difference::Of(inode);
    if (differs.IsNone()) return found;
    if (wanted_ == Wanted::kCount && differs.IsKnown()) {
      Count(found.file);
      return found;
    }
    found.file.candidate = ChangeCandidate::OfChanged(inode, differs);
    if (differs.may_content) found.checksum = WholeChecksum(inode);
    return found;
  }

  std::optional<Found> LookAtNew(const Inode& inode) {
    const bool is_plain = !inode.IsDirectory() && !inode.IsOrphan() &&
                          HasOneNewName(inode) &&
                          IsAtPlace(inode.links.front().parent);
    if (!is_plain) return std::nullopt;
    Found found{.file = {.ino = inode.ino}, .is_new = true};
    const Inode::Link& link = inode.links.front();
    found.origin.path = JoinPath(PathOf(link.parent), link.name);
    if (wanted_ == Wanted::kCount) {
      Count(found.file);
    } else {
      found.file.candidate = ChangeCandidate::OfNew(found.origin.path, inode);
    }
    return found;
  }

  /// Whether the one name of `inode` is its base name. That no directory above
  /// was moved, IsAtPlace says, which remembers it.
  [[nodiscard]] bool IsUnderBaseName(const Inode& inode) const {
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

  /// Whether the directory, and each above it, is one of the base that has its
  /// base name, or a new one.
  bool IsAtPlace(Ino directory) {
    // No recursion: a tree may be deeper than the stack.
    std::vector<Ino> way;
    bool is_at_place = true;
    for (Ino at = directory; at != kRootIno;) {
      const auto [known, is_new] = at_place_.try_emplace(at, false);
      is_at_place = known->second;
      if (!is_new) break;
      way.push_back(at);
      const Inode* inode = tree_.Find(at);
      is_at_place = inode != nullptr && !inode->IsOrphan() && !inode->lost &&
                    (inode->record.base ? IsUnderBaseName(*inode)
                                        : HasOneNewName(*inode));
      if (!is_at_place) break;
      at = inode->links.front().parent;
    }
    for (const Ino at : way) at_place_[at] = is_at_place;
    return is_at_place;
  }

  /// The path of a directory that is at its place. Most files follow one of
  /// the same directory.
  const std::string& PathOf(Ino directory) {
    if (last_ == directory) return last_path_;
    last_ = directory;
    const Inode* inode = tree_.Find(directory);
    last_path_ = tree_.VisiblePath(*inode).value_or("");
    return last_path_;
  }

  const Tree& tree_;
  const BaseDirectory& base_;
  const Wanted wanted_;
  const std::shared_ptr<Preimages> preimages_;
  std::unordered_map<Ino, bool> at_place_;  ///< directories
  Ino last_ = kNoIno;
  std::string last_path_;  ///< of `last_`
};

}  // namespace

std::optional<uint64_t> WholeChecksum(const Inode& inode) {
  if (inode.extents.empty()) return std::nullopt;
  const Extent& extent = inode.extents.begin()->second;
  const ContentRef& content = extent.content;
  const bool is_whole = content.segment != 0 && extent.offset == 0 &&
                        extent.length == inode.attr().size &&
                        content.delta == 0 &&
                        content.record_length == extent.length;
  if (!is_whole) return std::nullopt;
  return content.checksum;
}

bool HasOtherChecksum(Preimages* preimages, const BaseOrigin& origin,
                      uint64_t checksum) {
  if (preimages == nullptr) return false;
  const auto before = preimages->FindChecksum(Fingerprint::Of(origin));
  return before && *before != checksum;
}

// --- while operations run --------------------------------------------------

PlainSurvey::PlainSurvey(OverlayFilesystem& filesystem, Wanted wanted)
    : wanted_(wanted), touched_(filesystem.Watch()) {
  PlainFinder finder = filesystem.WhileShared([&](const Tree& tree,
                                                  const BaseDirectory& base) {
    return PlainFinder(tree, base, filesystem.origins().preimages(), wanted);
  });
  // An inode that becomes upper between two parts, or changes its place in
  // Tree::upper, may be missed. The freeze looks at it.
  size_t next = 0;
  std::vector<Found> found;
  found.reserve(kAtOnce + kPart);
  for (bool is_done = false; !is_done; found.clear()) {
    while (!is_done && found.size() < kAtOnce) {
      is_done =
          filesystem.WhileShared([&](const Tree& tree, const BaseDirectory&) {
            const size_t end = std::min(next + kPart, tree.upper().size());
            for (; next < end; ++next) {
              auto one = finder.Look(*tree.upper()[next]);
              if (one) found.push_back(std::move(*one));
            }
            return next >= tree.upper().size();
          });
    }
    InParallel(found.size(), [&](size_t i) { finder.Settle(found[i]); });
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
  const auto touched = std::exchange(survey.touched_, nullptr);
  if (frozen.IsComplete(*touched)) {
    files.TakeSurveyed(frozen, *touched, survey.settled_);
  }
  files.FindRest(frozen, survey.wanted_);
  return files;
}

void PlainFiles::Take(PlainFile file, size_t upper_at) {
  is_plain[upper_at] = true;
  if (file.is_change) ++changes;
  if (file.candidate) list.Add(std::move(file.candidate));
}

void PlainFiles::TakeSurveyed(const Frozen& frozen,
                              const TouchedInodes& touched,
                              std::vector<PlainFile>& surveyed) {
  for (PlainFile& file : surveyed) {
    if (touched.Has(file.ino)) continue;
    const Inode* inode = frozen.tree.Find(file.ino);
    const bool is_there = inode != nullptr && inode->upper;
    if (is_there) Take(std::move(file), inode->upper_at);
  }
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
