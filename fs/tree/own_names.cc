#include "fs/tree/own_names.h"

#include <algorithm>

#include "journal/support/case_folding.h"
#include "policy/builtin.h"

namespace txfs {
namespace {

/// The short name that FAT and NTFS give one of ours, such as "TXFS~1".
bool IsShortName(std::string_view folded) {
  constexpr size_t kMaxShortName = 8;
  const size_t tilde = folded.find('~');
  return folded.size() <= kMaxShortName && folded.starts_with("tx") &&
         tilde < folded.size() - 1 &&
         folded.find_first_not_of("0123456789", tilde + 1) ==
             std::string_view::npos;
}

}  // namespace

NameKind KindOfName(std::string_view name) {
  const char first = name.empty() ? 'a' : name.front();
  const bool is_ascii = static_cast<unsigned char>(first) < 0x80;
  // Nearly no name; but a character that is ignored may come first.
  const bool may_be = first == '.' || first == 't' || first == 'T' || !is_ascii;
  if (!may_be) return NameKind::kPlain;
  if (name == kStoreName || name.starts_with(kMountVaults)) {
    return NameKind::kOwn;
  }
  const std::string folded = FoldedName(name);
  const bool is_ours = folded == kStoreName ||
                       folded.starts_with(kMountVaults) || IsShortName(folded);
  return is_ours ? NameKind::kFolded : NameKind::kPlain;
}

const policy::Rule& OwnNamesRule() {
  static const policy::Rule kRule = [] {
    policy::Rule rule;
    rule.id = policy::kOwnNamesId;
    rule.reason = "txfs itself takes what has this name for its own";
    rule.suggest =
        "use another name; rules of a workspace are changed outside of its "
        "mount";
    return rule;
  }();
  return kRule;
}

bool OwnNames::HasAny(const Inode& inode) const {
  if (inode.ino == kRootIno || inode.IsOrphan()) return false;
  if (inode.links.empty()) {
    return inode.record.base && IsInBase(inode.record.base->path);
  }
  return std::ranges::any_of(inode.links, [&](const Inode::Link& link) {
    const Inode* parent = tree_.Find(link.parent);
    if (parent != nullptr) return Has(*parent, link.name);
    return KindOfName(link.name) != NameKind::kPlain;
  });
}

bool OwnNames::IsOwn(const Inode& directory, std::string_view name) const {
  const NameKind kind = KindOfName(name);
  if (kind == NameKind::kFolded) return Folds(directory);
  return kind == NameKind::kOwn;
}

bool OwnNames::IsBelow(const Inode& directory) const {
  const Inode* at = &directory;
  while (at->ino != kRootIno && !at->links.empty()) {
    const Inode::Link& link = at->links.front();
    at = tree_.Find(link.parent);
    if (at == nullptr) return KindOfName(link.name) != NameKind::kPlain;
    if (IsOwn(*at, link.name)) return true;
  }
  return at->ino != kRootIno && at->record.base &&
         IsInBase(at->record.base->path);
}

bool OwnNames::IsInBase(std::string_view path) const {
  for (; !path.empty(); path = ParentPath(path)) {
    const NameKind kind = KindOfName(BaseName(path));
    if (kind == NameKind::kOwn) return true;
    if (kind == NameKind::kFolded && FoldsInBase(std::string(ParentPath(path))))
      return true;
  }
  return false;
}

bool OwnNames::Folds(const Inode& directory) const {
  // A commit makes new directories where vaults are, and they take after that.
  if (FoldsCase(base_.root())) return true;
  const Inode* at = &directory;
  while (!at->record.base && at->ino != kRootIno) {
    if (at->links.empty()) return true;
    at = tree_.Find(at->links.front().parent);
    if (at == nullptr) return true;
  }
  return FoldsInBase(at->record.base ? at->record.base->path : "");
}

bool OwnNames::FoldsInBase(const std::string& path) const {
  const auto directory = base_.OpenDirectory(path);
  return !directory || FoldsCase((*directory)->get());
}

}  // namespace txfs
