#include "fs/posix/synthetic_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace txfs {
namespace {

/// Of all files that are looked up at a time.
constexpr size_t kMaxBytes = size_t{64} << 20;

/// Inodes of the tree have smaller numbers.
constexpr uint64_t kBit = uint64_t{1} << 62;
constexpr Ino kDirectoryIno{kBit};

bool IsSynthetic(Ino ino) { return (Raw(ino) & kBit) != 0; }

std::unexpected<Error> ReadOnly() {
  return Fail(EROFS, "what txfs tells of itself cannot be changed");
}

}  // namespace

SyntheticDirectory::SyntheticDirectory(Filesystem& below, std::string name,
                                       std::vector<SyntheticFile> files,
                                       const Clock* clock)
    : below_(below),
      name_(std::move(name)),
      files_(std::move(files)),
      clock_(clock),
      made_(clock->Now()),
      next_(kBit + 1),
      made_last_(files_.size()) {}

bool SyntheticDirectory::Has(Ino parent, std::string_view name) const {
  return IsSynthetic(parent) || IsDirectory(parent, name);
}

// --- attributes ------------------------------------------------------------

Result<struct stat> SyntheticDirectory::DirectoryStat() {
  struct stat st = TRY(below_.GetAttr(kRootIno));
  st.st_ino = Raw(kDirectoryIno);
  st.st_mode = S_IFDIR | 0555;
  st.st_nlink = 2;
  st.st_size = 0;
  st.st_blocks = 0;
  st.st_atim = st.st_mtim = st.st_ctim = made_.ToTimespec();
  return st;
}

Result<struct stat> SyntheticDirectory::FileStat(size_t index, size_t size) {
  struct stat st = TRY(DirectoryStat());
  // The same at each lookup: cp(1) takes a file for replaced otherwise.
  st.st_ino = Raw(kDirectoryIno) + 1 + index;
  st.st_mode = S_IFREG | 0444;
  if (files_[index].is_private) {
    st.st_mode = S_IFREG | 0400;
    st.st_uid = ::geteuid();
  }
  st.st_nlink = 1;
  st.st_size = static_cast<off_t>(size);
  st.st_atim = st.st_mtim = st.st_ctim = clock_->Now().ToTimespec();
  return st;
}

Result<struct stat> SyntheticDirectory::GetAttr(Ino ino) {
  if (!IsSynthetic(ino)) return below_.GetAttr(ino);
  if (ino == kDirectoryIno) return DirectoryStat();
  return TRY(Find(ino))->st;
}

// --- names -----------------------------------------------------------------

Result<Node> SyntheticDirectory::Lookup(Ino parent, std::string_view name) {
  if (parent == kDirectoryIno) return LookUpFile(name);
  if (IsSynthetic(parent)) return Fail(ENOTDIR, "lookup");
  if (!IsDirectory(parent, name)) return below_.Lookup(parent, name);
  return Node{.ino = kDirectoryIno, .st = TRY(DirectoryStat())};
}

Result<Node> SyntheticDirectory::LookUpFile(std::string_view name) {
  const auto file = std::ranges::find(files_, name, &SyntheticFile::name);
  if (file == files_.end()) return Fail(ENOENT, "lookup");
  const auto index = static_cast<size_t>(file - files_.begin());
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->content = ContentOf(index);
  snapshot->st = TRY(FileStat(index, snapshot->content->size()));
  const MutexLock lock(mutex_);
  TRY(Take(snapshot->content));
  const Ino ino{next_++};
  Node node{.ino = ino, .st = snapshot->st, .fleeting = true};
  snapshots_.emplace(ino, std::move(snapshot));
  return node;
}

SyntheticDirectory::SharedText SyntheticDirectory::ContentOf(size_t index) {
  const SyntheticFile& file = files_[index];
  if (!file.version) {
    return std::make_shared<const std::string>(file.content());
  }
  // Asked for before: what changes in between is seen the next time.
  const std::string version = file.version();
  {
    const MutexLock lock(mutex_);
    const Made& last = made_last_[index];
    if (last.content && last.version == version) return last.content;
  }
  auto content = std::make_shared<const std::string>(file.content());
  const MutexLock lock(mutex_);
  made_last_[index] = {version, content};
  return content;
}

Status SyntheticDirectory::Take(const SharedText& content) {
  uint64_t& users = users_[content];
  // Who opens them without end takes no more memory than that.
  const bool has_room = bytes_ == 0 || bytes_ + content->size() <= kMaxBytes;
  if (users == 0 && !has_room) {
    users_.erase(content);
    return Fail(ENFILE, "lookup");
  }
  if (users++ == 0) bytes_ += content->size();
  return {};
}

Result<SyntheticDirectory::SharedSnapshot> SyntheticDirectory::Find(Ino ino) {
  const MutexLock lock(mutex_);
  const auto found = snapshots_.find(ino);
  if (found == snapshots_.end()) return Fail(ESTALE, "inode");
  return SharedSnapshot(found->second);
}

void SyntheticDirectory::Forget(Ino ino, uint64_t lookups) {
  if (!IsSynthetic(ino)) return below_.Forget(ino, lookups);
  const MutexLock lock(mutex_);
  const auto found = snapshots_.find(ino);
  if (found == snapshots_.end()) return;
  uint64_t& held = found->second->lookups;
  held -= std::min(held, lookups);
  if (held != 0) return;
  const auto content = users_.find(found->second->content);
  if (--content->second == 0) {
    bytes_ -= content->first->size();
    users_.erase(content);
  }
  snapshots_.erase(found);
}

Status SyntheticDirectory::ReadDirectory(
    Ino ino, uint64_t cookie,
    const std::function<bool(const DirEntry&)>& visit) {
  if (!IsSynthetic(ino)) return below_.ReadDirectory(ino, cookie, visit);
  if (ino != kDirectoryIno) return Fail(ENOTDIR, "readdir");
  std::vector<DirEntry> entries{
      {.name = ".", .st_ino = Raw(ino), .type = FileType::kDirectory},
      {.name = "..", .st_ino = Raw(kRootIno), .type = FileType::kDirectory}};
  for (const SyntheticFile& file : files_) {
    entries.push_back({.name = file.name,
                       .st_ino = Raw(ino) + entries.size() - 1,
                       .type = FileType::kRegular});
  }
  for (uint64_t i = cookie; i < entries.size(); ++i) {
    entries[i].cookie = i + 1;
    if (!visit(entries[i])) return {};
  }
  return {};
}

Result<Node> SyntheticDirectory::Create(const Caller& caller, Ino parent,
                                        std::string_view name, uint32_t mode) {
  if (Has(parent, name)) return ReadOnly();
  return below_.Create(caller, parent, name, mode);
}

Result<Node> SyntheticDirectory::MakeNode(const Caller& caller, Ino parent,
                                          std::string_view name, uint32_t mode,
                                          uint64_t rdev) {
  if (Has(parent, name)) return ReadOnly();
  return below_.MakeNode(caller, parent, name, mode, rdev);
}

Result<Node> SyntheticDirectory::MakeDirectory(const Caller& caller, Ino parent,
                                               std::string_view name,
                                               uint32_t mode) {
  if (Has(parent, name)) return ReadOnly();
  return below_.MakeDirectory(caller, parent, name, mode);
}

Result<Node> SyntheticDirectory::MakeSymlink(const Caller& caller, Ino parent,
                                             std::string_view name,
                                             std::string_view target) {
  if (Has(parent, name)) return ReadOnly();
  return below_.MakeSymlink(caller, parent, name, target);
}

Result<Node> SyntheticDirectory::Link(const Caller& caller, Ino ino, Ino parent,
                                      std::string_view name) {
  if (IsSynthetic(ino) || Has(parent, name)) return ReadOnly();
  return below_.Link(caller, ino, parent, name);
}

Status SyntheticDirectory::Unlink(const Caller& caller, Ino parent,
                                  std::string_view name) {
  if (Has(parent, name)) return ReadOnly();
  return below_.Unlink(caller, parent, name);
}

Status SyntheticDirectory::RemoveDirectory(const Caller& caller, Ino parent,
                                           std::string_view name) {
  if (Has(parent, name)) return ReadOnly();
  return below_.RemoveDirectory(caller, parent, name);
}

Status SyntheticDirectory::Rename(const Caller& caller, Ino parent,
                                  std::string_view name, Ino new_parent,
                                  std::string_view new_name, RenameMode mode) {
  if (Has(parent, name) || Has(new_parent, new_name)) return ReadOnly();
  return below_.Rename(caller, parent, name, new_parent, new_name, mode);
}

// --- inodes ----------------------------------------------------------------

Result<struct stat> SyntheticDirectory::SetAttr(const Caller& caller, Ino ino,
                                                const AttrRequest& request) {
  if (IsSynthetic(ino)) return ReadOnly();
  return below_.SetAttr(caller, ino, request);
}

Result<std::string> SyntheticDirectory::ReadLink(Ino ino) {
  if (IsSynthetic(ino)) return Fail(EINVAL, "readlink");
  return below_.ReadLink(ino);
}

Result<std::string> SyntheticDirectory::GetXattr(Ino ino,
                                                 std::string_view name) {
  if (IsSynthetic(ino)) return Fail(ENODATA, "getxattr");
  return below_.GetXattr(ino, name);
}

Result<std::vector<std::string>> SyntheticDirectory::ListXattrs(Ino ino) {
  if (IsSynthetic(ino)) return std::vector<std::string>();
  return below_.ListXattrs(ino);
}

Status SyntheticDirectory::SetXattr(const Caller& caller, Ino ino,
                                    std::string_view name,
                                    std::string_view value, XattrMode mode) {
  if (IsSynthetic(ino)) return ReadOnly();
  return below_.SetXattr(caller, ino, name, value, mode);
}

Status SyntheticDirectory::RemoveXattr(const Caller& caller, Ino ino,
                                       std::string_view name) {
  if (IsSynthetic(ino)) return ReadOnly();
  return below_.RemoveXattr(caller, ino, name);
}

// --- content ---------------------------------------------------------------

Result<size_t> SyntheticDirectory::Read(Ino ino, uint64_t offset,
                                        MutableByteSpan out) {
  if (!IsSynthetic(ino)) return below_.Read(ino, offset, out);
  if (ino == kDirectoryIno) return Fail(EISDIR, "read");
  const SharedSnapshot snapshot = TRY(Find(ino));
  const std::string& content = *snapshot->content;
  if (offset >= content.size()) return 0;
  const size_t size = std::min<uint64_t>(out.size(), content.size() - offset);
  std::memcpy(out.data(), content.data() + offset, size);
  return size;
}

Result<size_t> SyntheticDirectory::Write(const Caller& caller, Ino ino,
                                         uint64_t offset, ByteSpan bytes,
                                         WriteMode mode) {
  if (IsSynthetic(ino)) return ReadOnly();
  return below_.Write(caller, ino, offset, bytes, mode);
}

Status SyntheticDirectory::Allocate(const Caller& caller, Ino ino,
                                    uint64_t offset, uint64_t length,
                                    AllocateMode mode) {
  if (IsSynthetic(ino)) return ReadOnly();
  return below_.Allocate(caller, ino, offset, length, mode);
}

Result<size_t> SyntheticDirectory::CopyRange(const Caller& caller, Ino from,
                                             uint64_t from_offset, Ino to,
                                             uint64_t to_offset,
                                             uint64_t length) {
  if (IsSynthetic(to)) return ReadOnly();
  // The caller copies through its own memory then.
  if (IsSynthetic(from)) return Fail(EXDEV, "copy_file_range");
  return below_.CopyRange(caller, from, from_offset, to, to_offset, length);
}

Result<uint64_t> SyntheticDirectory::Seek(Ino ino, uint64_t offset,
                                          int whence) {
  if (!IsSynthetic(ino)) return below_.Seek(ino, offset, whence);
  const uint64_t size = TRY(Find(ino))->content->size();
  if (offset >= size) return Fail(ENXIO, "lseek");
  return whence == SEEK_DATA ? offset : size;
}

}  // namespace txfs
