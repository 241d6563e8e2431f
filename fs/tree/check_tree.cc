#include "fs/tree/check_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "fs/posix/checks.h"

namespace txfs {
namespace {

using Row = std::pair<const std::pair<Ino, std::string>, DentryValue>;

bool IsDirectory(const InodeRecord& record) {
  return record.attr.type == FileType::kDirectory;
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name != "." &&
         name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

class TreeCheck {
 public:
  TreeCheck(const Image& image, const BaseDirectory* base, Findings findings);

  void Run();

 private:
  /// A directory on the way up: with a record, or pristine with a base path.
  struct Directory {
    Ino ino = kNoIno;
    std::string base_path;
  };
  enum class Reach { kYes, kNo, kCycle };

  void Add(std::string_view kind, Ino ino, const std::string& what) {
    findings_.Add(kind, NameOf(ino) + " " + what);
  }
  /// Only the first few have a path, because finding it takes long.
  [[nodiscard]] std::string NameOf(Ino ino) {
    constexpr int kDescribed = 20;
    if (described_ >= kDescribed) return "inode " + std::to_string(Raw(ino));
    ++described_;
    return image_.Describe(ino);
  }
  [[nodiscard]] const InodeRecord* Find(Ino ino) const;
  [[nodiscard]] uint64_t NamesOf(Ino ino) const;
  [[nodiscard]] uint64_t SubdirectoriesOf(Ino ino) const;

  void IndexNames();
  void IndexBase();
  void CheckRecord(Ino ino, const InodeRecord& record);
  void CheckName(const Row& row);
  void CheckLinks(Ino ino, const InodeRecord& record);
  void CheckBaseLinks(Ino ino, const InodeRecord& record);
  void CheckExtents();
  void CheckXattrs();
  void CheckReach(Ino ino, const InodeRecord& record);

  [[nodiscard]] bool IsSame(const struct stat& st, const BaseOrigin& origin,
                            FileType type) const;
  /// Whether the base has the object at its recorded path.
  [[nodiscard]] bool IsThere(const InodeRecord& record) const;
  [[nodiscard]] bool IsAsItWas(const BaseOrigin& origin, FileType type) const;
  [[nodiscard]] Directory BaseDirectoryAt(std::string_view path) const;
  [[nodiscard]] std::optional<Directory> Above(const Directory& at) const;
  [[nodiscard]] std::optional<Directory> AboveBaseName(
      const std::string& path) const;
  Reach ReachOf(Directory at);

  const Image& image_;
  const BaseDirectory* base_;
  Findings findings_;
  uint64_t base_device_ = 0;
  int described_ = 0;
  std::unordered_map<Ino, std::vector<const Row*>> names_;
  std::unordered_map<Ino, uint64_t> subdirectories_;
  std::map<std::string, Ino, std::less<>> base_directories_;
  /// Base names that rows hide: counts per object, and the directories among
  /// them per parent directory.
  using Object = std::pair<uint64_t, uint64_t>;
  std::map<Object, uint64_t> hidden_names_;
  std::unordered_map<Ino, uint64_t> hidden_directories_;
  /// Whether the base changed a directory with such rows. The objects that they
  /// hid are then unknown.
  bool parents_changed_ = false;
  /// Deleted files. A later name of such a file leads to another inode, so the
  /// hidden names of the file are not names of that inode.
  std::set<Object> deleted_;
  std::unordered_map<Ino, Reach> reach_;
};

TreeCheck::TreeCheck(const Image& image, const BaseDirectory* base,
                     Findings findings)
    : image_(image), base_(base), findings_(std::move(findings)) {
  struct stat root{};
  if (base_ != nullptr && ::fstat(base_->root(), &root) != 0) base_ = nullptr;
  base_device_ = root.st_dev;
}

const InodeRecord* TreeCheck::Find(Ino ino) const {
  const auto found = image_.inodes.find(ino);
  return found == image_.inodes.end() ? nullptr : &found->second;
}

uint64_t TreeCheck::NamesOf(Ino ino) const {
  const auto found = names_.find(ino);
  return found == names_.end() ? 0 : found->second.size();
}

uint64_t TreeCheck::SubdirectoriesOf(Ino ino) const {
  const auto found = subdirectories_.find(ino);
  return found == subdirectories_.end() ? 0 : found->second;
}

void TreeCheck::Run() {
  IndexNames();
  IndexBase();
  for (const auto& [ino, record] : image_.inodes) CheckRecord(ino, record);
  for (const Row& row : image_.dentries) CheckName(row);
  for (const auto& [ino, record] : image_.inodes) {
    CheckLinks(ino, record);
    CheckReach(ino, record);
  }
  CheckExtents();
  CheckXattrs();
}

void TreeCheck::IndexNames() {
  for (const Row& row : image_.dentries) {
    if (row.second.kind != DentryKind::kInode) continue;
    names_[row.second.ino].push_back(&row);
    const InodeRecord* child = Find(row.second.ino);
    if (child != nullptr && IsDirectory(*child)) {
      ++subdirectories_[row.first.first];
    }
  }
  for (const auto& [ino, record] : image_.inodes) {
    if (!record.base) continue;
    if (!IsDirectory(record)) {
      if (record.attr.nlink == 0) {
        deleted_.emplace(record.base->dev, record.base->ino);
      }
      continue;
    }
    const auto [other, is_new] =
        base_directories_.try_emplace(record.base->path, ino);
    if (is_new) continue;
    // A deleted directory may return at its path, if another program moved it
    // away before.
    if (record.attr.nlink == 0) continue;
    if (Find(other->second)->attr.nlink == 0) {
      other->second = ino;
      continue;
    }
    Add("tree.inode", ino,
        "and inode " + std::to_string(Raw(other->second)) +
            " are the same directory of the base");
  }
}

void TreeCheck::IndexBase() {
  if (base_ == nullptr) return;
  Ino last = kNoIno;
  for (const auto& [key, value] : image_.dentries) {
    const InodeRecord* parent = Find(key.first);
    if (parent == nullptr || !parent->base) continue;
    // Rows come sorted by directory.
    if (key.first != last && !IsAsItWas(*parent->base, parent->attr.type)) {
      parents_changed_ = true;
    }
    last = key.first;
    const auto st = base_->Stat(JoinPath(parent->base->path, key.second));
    if (!st) continue;
    if (S_ISDIR(st->st_mode)) {
      ++hidden_directories_[key.first];
    } else {
      const uint64_t dev = st->st_dev == base_device_ ? 0 : st->st_dev;
      ++hidden_names_[{dev, st->st_ino}];
    }
  }
}

// --- one by one ------------------------------------------------------------

void TreeCheck::CheckRecord(Ino ino, const InodeRecord& record) {
  const Attr& attr = record.attr;
  const bool regular = attr.type == FileType::kRegular;
  const bool symlink = attr.type == FileType::kSymlink;
  if ((attr.mode & ~07777U) != 0) Add("tree.inode", ino, "has a wrong mode");
  if (ino == kRootIno &&
      (!IsDirectory(record) || !record.base || !record.base->path.empty())) {
    Add("tree.inode", ino, "is the root, but not the root of the base");
  }
  if (symlink == record.symlink.empty()) {
    Add("tree.inode", ino,
        symlink ? "is a symlink without a target"
                : "has a symlink target, but is not a symlink");
  } else if (symlink && attr.size != record.symlink.size()) {
    Add("tree.inode", ino, "is a symlink with another size than its target");
  }
  if (record.base && TypeOfMode(record.base->mode) != attr.type) {
    Add("tree.inode", ino, "has another type than its base object");
  }
  const uint64_t limit =
      regular && record.base ? std::min(record.base->size, attr.size) : 0;
  if (attr.base_limit > limit) {
    Add("tree.inode", ino, "takes more content from the base than there is");
  }
  if (attr.own_segment != 0 && !regular) {
    Add("tree.inode", ino, "has a segment, but is not a regular file");
  }
}

void TreeCheck::CheckName(const Row& row) {
  const Ino parent = row.first.first;
  const std::string& name = row.first.second;
  const auto add = [&](const std::string& what) {
    findings_.Add("tree.dentry", "the name " + Quote(name) + " in " +
                                     NameOf(parent) + " " + what);
  };
  if (!IsName(name)) add("is not a valid name");
  const InodeRecord* directory = Find(parent);
  if (directory == nullptr) return add("is in an unknown directory");
  if (!IsDirectory(*directory)) return add("is not in a directory");
  if (row.second.kind == DentryKind::kWhiteout) {
    if (row.second.ino != kNoIno) add("is a whiteout with an inode");
    if (!directory->base)
      add("is a whiteout in a directory that is not in the base");
    return;
  }
  const InodeRecord* inode = Find(row.second.ino);
  if (inode == nullptr) {
    return add("refers to inode " + std::to_string(Raw(row.second.ino)) +
               ", which has no record");
  }
  if (row.second.ino == kRootIno) add("refers to the root");
  if (directory->attr.nlink == 0) add("is in a deleted directory");
}

void TreeCheck::CheckExtents() {
  const std::pair<const std::pair<Ino, uint64_t>, Extent>* last = nullptr;
  for (const auto& row : image_.extents) {
    const auto& [key, extent] = row;
    const std::string range = "has content at [" +
                              std::to_string(extent.offset) + ", " +
                              std::to_string(extent.end()) + ")";
    const InodeRecord* inode = Find(key.first);
    if (inode == nullptr) {
      Add("tree.extent", key.first, range + ", but no record");
    } else if (inode->attr.type != FileType::kRegular) {
      Add("tree.extent", key.first, range + ", but is not a regular file");
    } else if (inode->attr.nlink == 0) {
      Add("tree.extent", key.first, range + ", but is deleted");
    } else if (extent.end() > inode->attr.size) {
      Add("tree.extent", key.first,
          range + ", but ends at " + std::to_string(inode->attr.size));
    }
    if (last != nullptr && last->first.first == key.first &&
        last->second.end() > extent.offset) {
      Add("tree.extent", key.first, range + " twice");
    }
    last = &row;
  }
}

void TreeCheck::CheckXattrs() {
  for (const auto& [key, value] : image_.xattrs) {
    const InodeRecord* inode = Find(key.first);
    const std::string what = "has the attribute " + Quote(key.second);
    if (inode == nullptr) {
      Add("tree.xattr", key.first, what + ", but no record");
    } else if (!inode->attr.xattrs_owned) {
      Add("tree.xattr", key.first,
          what + ", but takes its attributes from the base");
    } else if (inode->attr.nlink == 0) {
      Add("tree.xattr", key.first, what + ", but is deleted");
    }
  }
}

// --- links -----------------------------------------------------------------

void TreeCheck::CheckLinks(Ino ino, const InodeRecord& record) {
  const uint64_t names = NamesOf(ino);
  const uint64_t links = record.attr.nlink;
  if (IsDirectory(record) && names > 1) {
    Add("tree.directory", ino, "has " + std::to_string(names) + " names");
  }
  if (record.base) return CheckBaseLinks(ino, record);
  const uint64_t expected =
      IsDirectory(record) ? 2 + SubdirectoriesOf(ino) : names;
  if (links == 0) {
    Add("tree.nlink", ino, "is deleted and not in the base, but has a record");
  } else if (links != expected) {
    Add("tree.nlink", ino,
        "has a link count of " + std::to_string(links) + " instead of " +
            std::to_string(expected));
  }
}

/// A base name counts unless a row hides it.
void TreeCheck::CheckBaseLinks(Ino ino, const InodeRecord& record) {
  const BaseOrigin& origin = *record.base;
  const uint64_t links = record.attr.nlink;
  const uint64_t names = NamesOf(ino);
  if (links == 0) {
    if (names != 0) Add("tree.nlink", ino, "is deleted, but has a name");
    return;
  }
  const bool directory = IsDirectory(record);
  const uint64_t added = directory ? SubdirectoriesOf(ino) : names;
  // Some filesystems do not count subdirectories.
  if (directory && origin.nlink <= 1) {
    if (links != origin.nlink) Add("tree.nlink", ino, "has a wrong link count");
    return;
  }
  // The count of a directory omits later additions to the base, but their
  // removal by the transaction lowers it.
  uint64_t least = directory ? 2 : added;
  uint64_t most = origin.nlink + added;
  const bool is_known =
      directory ||
      (!parents_changed_ && !deleted_.contains({origin.dev, origin.ino}));
  if (base_ != nullptr && is_known && IsAsItWas(origin, record.attr.type)) {
    uint64_t hidden = 0;
    if (directory) {
      const auto found = hidden_directories_.find(ino);
      if (found != hidden_directories_.end()) hidden = found->second;
    } else {
      const auto found = hidden_names_.find({origin.dev, origin.ino});
      if (found != hidden_names_.end()) hidden = found->second;
    }
    least = most = most - std::min<uint64_t>(hidden, most);
  }
  if (links >= least && links <= most) return;
  Add("tree.nlink", ino,
      "has a link count of " + std::to_string(links) + " instead of " +
          (least == most
               ? std::to_string(least)
               : std::to_string(least) + " to " + std::to_string(most)));
}

bool TreeCheck::IsSame(const struct stat& st, const BaseOrigin& origin,
                       FileType type) const {
  return TypeOfMode(st.st_mode) == type && st.st_ino == origin.ino &&
         (st.st_dev == base_device_ ? 0 : st.st_dev) == origin.dev;
}

bool TreeCheck::IsThere(const InodeRecord& record) const {
  const auto st = base_->Stat(record.base->path);
  return st && IsSame(*st, *record.base, record.attr.type);
}

bool TreeCheck::IsAsItWas(const BaseOrigin& origin, FileType type) const {
  const auto st = base_->Stat(origin.path);
  return st && IsSame(*st, origin, type) && st->st_nlink == origin.nlink &&
         Timestamp::From(st->st_ctim) == origin.ctime;
}

// --- reach -----------------------------------------------------------------

TreeCheck::Directory TreeCheck::BaseDirectoryAt(std::string_view path) const {
  const auto found = base_directories_.find(path);
  if (found != base_directories_.end()) return {found->second, ""};
  if (path.empty()) return {kRootIno, ""};
  return {kNoIno, std::string(path)};
}

/// The directory that shows the base name `path`; none if a row hides it.
std::optional<TreeCheck::Directory> TreeCheck::AboveBaseName(
    const std::string& path) const {
  const Directory parent = BaseDirectoryAt(ParentPath(path));
  const bool hidden =
      parent.ino != kNoIno &&
      image_.dentries.contains({parent.ino, std::string(BaseName(path))});
  if (hidden) return std::nullopt;
  return parent;
}

std::optional<TreeCheck::Directory> TreeCheck::Above(
    const Directory& at) const {
  if (at.ino == kNoIno) return AboveBaseName(at.base_path);
  const InodeRecord* record = Find(at.ino);
  if (record == nullptr || record->attr.nlink == 0) return std::nullopt;
  const auto names = names_.find(at.ino);
  if (names != names_.end()) {
    return Directory{names->second.front()->first.first, ""};
  }
  if (!record->base) return std::nullopt;
  return AboveBaseName(record->base->path);
}

/// Whether the parents of a directory lead to the root.
TreeCheck::Reach TreeCheck::ReachOf(Directory at) {
  std::vector<Ino> way;
  std::set<Ino> passed;
  Reach reach = Reach::kYes;
  while (at.ino != kRootIno) {
    if (at.ino != kNoIno) {
      const auto known = reach_.find(at.ino);
      if (known != reach_.end()) {
        reach = known->second;
        break;
      }
      if (!passed.insert(at.ino).second) {
        reach = Reach::kCycle;
        break;
      }
      way.push_back(at.ino);
    }
    const auto above = Above(at);
    if (!above) {
      reach = Reach::kNo;
      break;
    }
    at = *above;
  }
  for (const Ino ino : way) reach_[ino] = reach;
  return reach;
}

void TreeCheck::CheckReach(Ino ino, const InodeRecord& record) {
  if (ino == kRootIno || record.attr.nlink == 0) return;
  Reach reach = Reach::kNo;
  if (IsDirectory(record)) {
    reach = ReachOf({ino, ""});
  } else if (const auto names = names_.find(ino); names != names_.end()) {
    for (const Row* row : names->second) {
      const Reach one = ReachOf({row->first.first, ""});
      if (one == Reach::kYes) reach = one;
    }
  } else if (record.base && record.base->nlink > 1) {
    return;  // It may have other names in the base.
  } else if (record.base) {
    const auto above = AboveBaseName(record.base->path);
    if (above) reach = ReachOf(*above);
    // Another program deleted the file, and the transaction its directory.
    if (reach == Reach::kNo && base_ != nullptr && !IsThere(record)) return;
  }
  if (reach == Reach::kCycle) {
    Add("tree.directory", ino, "is inside itself");
  } else if (reach == Reach::kNo) {
    Add("tree.unreachable", ino, "cannot be reached from the root");
  }
}

}  // namespace

void CheckTree(const Image& image, const BaseDirectory* base,
               Findings findings) {
  TreeCheck(image, base, std::move(findings)).Run();
}

Status CheckServable(const Image& image) {
  CheckReport report;
  CheckTree(image, nullptr, Findings(report, ""));
  for (const Problem& problem : report.problems) {
    if (problem.kind == "tree.nlink" || problem.kind == "tree.unreachable") {
      continue;
    }
    return Fail(
        EBADMSG,
        "the transaction's tables contradict each other: " + problem.message,
        "`txfs fsck` lists all damage");
  }
  return {};
}

}  // namespace txfs
