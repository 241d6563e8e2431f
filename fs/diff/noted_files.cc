#include "fs/diff/noted_files.h"

#include <optional>
#include <unordered_map>

#include "journal/support/parallel.h"

namespace txfs {
namespace {

class NotedFinder {
 public:
  NotedFinder(Frozen& frozen, bool counts)
      : frozen_(frozen),
        counts_(counts),
        preimages_(frozen.origins.preimages()) {}

  NotedFiles Run() {
    // Directories that were opened lately may have been moved since.
    frozen_.base.DropCache();
    NotedFiles found;
    std::vector<Candidate> candidates;
    frozen_.tree.ForEachUpper([&](Inode& inode) {
      std::optional<bool> is_change;
      if (IsShownAtItsPlace(inode))
        is_change = counts_ ? IsChange(inode) : false;
      if (is_change) {
        candidates.push_back({.inode = &inode, .is_change = *is_change});
      } else {
        found.others.push_back(&inode);
      }
    });
    // Nobody gets an answer meanwhile.
    InParallel(candidates.size(), [&](size_t i) {
      candidates[i].is_as_noted = IsAsNoted(*candidates[i].inode);
    });
    for (const Candidate& candidate : candidates) {
      if (!candidate.is_as_noted) {
        found.others.push_back(candidate.inode);
      } else if (candidate.is_change) {
        ++found.changes;
      }
    }
    return found;
  }

 private:
  struct Candidate {
    Inode* inode = nullptr;
    bool is_change = false;
    bool is_as_noted = false;
  };

  /// Whether `inode` is a file of a single name, which the transaction left
  /// alone, as it did those of the directories above.
  bool IsShownAtItsPlace(const Inode& inode) {
    const auto& origin = inode.record.base;
    return inode.attr().type == FileType::kRegular && origin &&
           !inode.IsOrphan() && !inode.lost && origin->nlink == 1 &&
           HasBaseName(inode) && IsAtPlace(inode.links.front().parent);
  }

  [[nodiscard]] bool HasBaseName(const Inode& inode) const {
    if (inode.links.size() != 1) return false;
    const Inode::Link& link = inode.links.front();
    const Inode* parent = frozen_.tree.Find(link.parent);
    if (parent == nullptr || !parent->record.base) return false;
    return parent->CachedChild(link.name) == &inode &&
           IsJoined(inode.record.base->path, parent->record.base->path,
                    link.name);
  }

  /// Whether `path` is `name` in `directory`.
  static bool IsJoined(std::string_view path, std::string_view directory,
                       std::string_view name) {
    return BaseName(path) == name && ParentPath(path) == directory;
  }

  /// Whether the directory, and each above it, is one of the base that has its
  /// base name.
  bool IsAtPlace(Ino directory) {
    // No recursion: a tree may be deeper than the stack.
    std::vector<Ino> way;
    bool is_at_place = true;
    for (Ino at = directory; at != kRootIno;) {
      const auto [known, is_new] = at_place_.try_emplace(at, false);
      is_at_place = known->second;
      if (!is_new) break;
      way.push_back(at);
      const Inode* inode = frozen_.tree.Find(at);
      is_at_place = inode != nullptr && inode->record.base &&
                    !inode->IsOrphan() && !inode->lost && HasBaseName(*inode);
      if (!is_at_place) break;
      at = inode->links.front().parent;
    }
    for (const Ino at : way) at_place_[at] = is_at_place;
    return is_at_place;
  }

  [[nodiscard]] bool IsAsNoted(const Inode& inode) const {
    const BaseOrigin& origin = *inode.record.base;
    const auto st = frozen_.base.Stat(origin.path);
    return st && frozen_.tree.OriginOf(origin.path, *st) == origin;
  }

  /// Whether the file differs from the noted one; none: not known.
  [[nodiscard]] std::optional<bool> IsChange(const Inode& inode) const {
    const Attr& attr = inode.attr();
    const BaseOrigin& origin = *inode.record.base;
    const bool differs = attr.mode != (origin.mode & 07777) ||
                         attr.uid != origin.uid || attr.gid != origin.gid ||
                         attr.size != origin.size;
    if (differs || HasOtherChecksum(inode, preimages_.get())) return true;
    if (inode.ContentChanged() || attr.xattrs_owned) return std::nullopt;
    return false;
  }

  Frozen& frozen_;
  const bool counts_;
  const std::shared_ptr<Preimages> preimages_;
  std::unordered_map<Ino, bool> at_place_;  ///< directories
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

NotedFiles NotedFiles::Find(Frozen& frozen) {
  return NotedFinder(frozen, false).Run();
}

NotedFiles NotedFiles::Count(Frozen& frozen) {
  return NotedFinder(frozen, true).Run();
}

}  // namespace txfs
