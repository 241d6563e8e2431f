#include "fs/tree/own_names.h"

#include <algorithm>

#include "journal/support/case_folding.h"
#include "policy/builtin.h"

namespace txfs {

const policy::Rule& OwnNamesRule() {
  static const policy::Rule kRule = [] {
    policy::Rule rule;
    rule.id = policy::kOwnNamesId;
    rule.reason = "txfs reserves this name for its own files";
    rule.suggest =
        "use another name; change the rules of a workspace outside its mount";
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
  // A commit creates new directories in a vault; they inherit its case folding.
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
