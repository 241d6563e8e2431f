#include "fs/conflicts.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

namespace txfs {
namespace {

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

std::string ShownPath(const std::string& path) {
  return path.empty() ? "." : path;
}

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
      conflicts.push_back({ShownPath(origin.path), "deleted"});
    } else if (!st) {
      status = std::unexpected(st.error());
    } else if (!Matches(origin, *st)) {
      conflicts.push_back({ShownPath(origin.path), "changed"});
    }
  });
  TRY(std::move(status));
  for (const Inode* directory : directories) {
    TRY(FindCreated(frozen, *directory, known, conflicts));
  }
  std::ranges::sort(conflicts, {}, &Conflict::path);
  return conflicts;
}

}  // namespace txfs
