#include "fs/base/base_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "fs/base/name_kind.h"
#include "fs/host/xattrs.h"
#include "journal/support/case_folding.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr size_t kCachedDirectories = 128;
/// How far above a directory one is looked for that is open already.
constexpr int kLevelsSought = 16;

/// openat2 within `dir`; plain openat where the kernel lacks it (before 5.6).
Result<UniqueFd> OpenBeneath(int dir, const std::string& path, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (;;) {
    const long fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno == ENOSYS) {
      return OpenAt(dir, path, static_cast<int>(flags) | O_NOFOLLOW);
    }
    if (errno != EINTR && errno != EAGAIN) return Fail(errno, "open " + path);
  }
}

std::atomic<uint64_t> walked_bytes = 0;

/// Opens directory `path` of any length with the flags `last`, in pieces that
/// openat2 takes. The directories on the way need only be searchable.
Result<UniqueFd> OpenDirectoryBeneath(int root, std::string_view path,
                                      uint64_t last) {
  walked_bytes.fetch_add(path.size(), std::memory_order_relaxed);
  UniqueFd current;
  do {
    std::string_view piece = path.substr(0, PATH_MAX - 1);
    if (piece.size() < path.size()) piece = piece.substr(0, piece.rfind('/'));
    path.remove_prefix(std::min(path.size(), piece.size() + 1));
    const int from = current.valid() ? current.get() : root;
    const uint64_t flags = path.empty() ? last : O_PATH;
    current = TRY(OpenBeneath(from, piece.empty() ? "." : std::string(piece),
                              flags | O_DIRECTORY));
  } while (!path.empty());
  return current;
}

/// Opens a directory for listing or, if this user may only search it, with
/// O_PATH.
Result<UniqueFd> OpenForSearch(int root, std::string_view path) {
  auto fd = OpenDirectoryBeneath(root, path, O_RDONLY);
  if (fd || fd.error().code != EACCES) return fd;
  return OpenDirectoryBeneath(root, path, O_PATH);
}

FileType TypeOfEntry(int dir, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return FileType::kRegular;
    case DT_DIR:
      return FileType::kDirectory;
    case DT_LNK:
      return FileType::kSymlink;
    case DT_FIFO:
      return FileType::kFifo;
    case DT_SOCK:
      return FileType::kSocket;
    case DT_CHR:
      return FileType::kCharDevice;
    case DT_BLK:
      return FileType::kBlockDevice;
    default:
      break;
  }
  struct stat st{};
  if (::fstatat(dir, entry.d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return FileType::kRegular;
  }
  return TypeOfMode(st.st_mode).value_or(FileType::kRegular);
}

}  // namespace

bool IsOverlay(int dir) {
  struct statfs st{};
  return ::fstatfs(dir, &st) == 0 &&
         static_cast<uint64_t>(st.f_type) == OVERLAYFS_SUPER_MAGIC;
}

std::string JoinPath(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  std::string path;
  path.reserve(directory.size() + 1 + name.size());
  path.append(directory).append(1, '/').append(name);
  return path;
}

std::string_view ParentPath(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view()
                                         : path.substr(0, slash);
}

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool IsAtOrBelow(std::string_view path, std::string_view ancestor) {
  if (ancestor.empty()) return true;
  return path.starts_with(ancestor) &&
         (path.size() == ancestor.size() || path[ancestor.size()] == '/');
}

bool IsReservedName(bool in_root, std::string_view name) {
  return name.starts_with(kMountVaults) || (in_root && name == kStoreName);
}

namespace {

/// Whether `name` leads to what is never shown, in the directory `dir`.
bool IsHidden(int dir, bool in_root, std::string_view name) {
  if (IsReservedName(in_root, name)) return true;
  if (KindOfName(name) != NameKind::kFolded || !FoldsCase(dir)) return false;
  return in_root || FoldedName(name) != kStoreName;
}

}  // namespace

uint64_t BaseDirectory::walked() { return walked_bytes; }

namespace {

/// Where the names of `path` end that are up to `levels` further on than those
/// that end at `at`.
size_t LevelsBelow(std::string_view path, size_t at, int levels) {
  for (; levels > 0 && at < path.size(); --levels) {
    at = std::min(path.find('/', at + 1), path.size());
  }
  return at;
}

}  // namespace

BaseDirectory::BaseDirectory(UniqueFd root) : root_(std::move(root)) {
  struct stat st{};
  if (::fstat(root_.get(), &st) == 0) device_ = st.st_dev;
}

BaseDirectory::Nearest BaseDirectory::FindNearest(
    const std::string& path) const {
  const MutexLock lock(mutex_);
  std::string_view above = path;
  for (int i = 0; i < kLevelsSought; ++i) {
    const auto found = by_path_.find(above);
    if (found != by_path_.end()) {
      recent_.splice(recent_.begin(), recent_, found->second);
      return {found->second->fd, above.size(), drops_};
    }
    if (above.empty()) break;
    above = ParentPath(above);
  }
  return {.drops = drops_};
}

// In a chain of directories a walk from the root for each takes the square of
// its length, and more where the chain is not in the base. So some on the way
// are opened first: the next path is not far from one that is open, and what is
// missing is found missing at its first name.
Result<SharedFd> BaseDirectory::OpenDirectory(const std::string& path) const {
  Nearest nearest = FindNearest(path);
  if (nearest.fd && nearest.length == path.size()) return nearest.fd;
  SharedFd from = std::move(nearest.fd);
  size_t at = nearest.length;
  for (size_t end = at;;) {
    end = LevelsBelow(path, end, kLevelsSought - 1);
    const std::string_view whole(path);
    from = std::make_shared<UniqueFd>(TRY(OpenForSearch(
        from ? from->get() : root_.get(),
        whole.substr(at == 0 ? 0 : at + 1, at == 0 ? end : end - at - 1))));
    at = end;
    Remember(path.substr(0, end), from, nearest.drops);
    if (end == path.size()) return from;
  }
}

void BaseDirectory::Remember(const std::string& path, SharedFd fd,
                             uint64_t drops) const {
  const MutexLock lock(mutex_);
  if (drops != drops_ || by_path_.contains(path)) return;
  recent_.push_front({path, std::move(fd)});
  by_path_.emplace(recent_.front().path, recent_.begin());
  if (recent_.size() > kCachedDirectories) {
    by_path_.erase(recent_.back().path);
    recent_.pop_back();
  }
}

void BaseDirectory::DropCache() const {
  const MutexLock lock(mutex_);
  by_path_.clear();
  recent_.clear();
  ++drops_;
}

Result<struct stat> BaseDirectory::Stat(const std::string& path) const {
  return Stat(path, Names::kShown);
}

Result<struct stat> BaseDirectory::StatReserved(const std::string& path) const {
  return Stat(path, Names::kAll);
}

Result<SharedFd> BaseDirectory::OpenParent(const std::string& directory) const {
  auto dir = OpenDirectory(directory);
  // Where a parent is no directory, or a symlink, nothing is below it.
  if (!dir && (dir.error().code == ENOTDIR || dir.error().code == ELOOP)) {
    return Fail(ENOENT, "stat " + directory);
  }
  return dir;
}

Result<struct stat> BaseDirectory::Stat(const std::string& path,
                                        Names names) const {
  struct stat st{};
  if (path.empty()) {
    if (::fstat(root_.get(), &st) != 0) return Fail(errno, "stat .");
    return st;
  }
  const SharedFd dir = TRY(OpenParent(std::string(ParentPath(path))));
  const std::string name(BaseName(path));
  if (names == Names::kShown &&
      IsHidden(dir->get(), ParentPath(path).empty(), name)) {
    return Fail(ENOENT, "stat " + path);
  }
  if (::fstatat(dir->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stat " + path);
  }
  return st;
}

std::vector<Result<struct stat>> BaseDirectory::StatEach(
    const std::string& directory,
    std::span<const std::string_view> names) const {
  std::vector<Result<struct stat>> results(names.size(), Fail(ENOENT, "stat"));
  const auto dir = OpenParent(directory);
  if (!dir) {
    std::ranges::fill(results, std::unexpected(dir.error()));
    return results;
  }
  std::string name;  // keeps its memory from one to the next
  for (size_t i = 0; i < names.size(); ++i) {
    name = names[i];
    if (IsHidden((*dir)->get(), directory.empty(), name)) continue;
    struct stat st{};
    if (::fstatat((*dir)->get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
      results[i] = st;
    } else if (errno != ENOENT) {
      results[i] = Fail(errno, "stat " + JoinPath(directory, name));
    }
  }
  return results;
}

Result<std::vector<BaseEntry>> BaseDirectory::List(
    const std::string& path) const {
  const SharedFd dir = TRY(OpenDirectory(path));
  // A stream of its own: the cached descriptor's position is shared.
  auto reopened = OpenAt(dir->get(), ".", O_RDONLY | O_DIRECTORY);
  // That takes search permission, which listing by its path does not.
  if (!reopened && reopened.error().code == EACCES) {
    reopened = OpenDirectoryBeneath(root_.get(), path, O_RDONLY);
  }
  UniqueFd own = TRY(std::move(reopened));
  const DirStream stream(::fdopendir(own.get()));
  if (!stream) return Fail(errno, "opendir " + path);
  const int fd = own.Release();
  std::vector<BaseEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (IsHidden(fd, path.empty(), name)) continue;
    entries.push_back(
        {std::string(name), entry->d_ino, TypeOfEntry(fd, *entry)});
  }
  if (errno != 0) return Fail(errno, "readdir " + path);
  return entries;
}

Result<SharedFd> BaseDirectory::OpenFile(const std::string& path) const {
  const SharedFd dir = TRY(OpenDirectory(std::string(ParentPath(path))));
  // O_NONBLOCK: should a FIFO stand there by now, opening must not wait.
  UniqueFd fd = TRY(OpenBeneath(dir->get(), std::string(BaseName(path)),
                                O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  return std::make_shared<UniqueFd>(std::move(fd));
}

Result<std::string> BaseDirectory::ReadLink(const std::string& path) const {
  const SharedFd dir = TRY(OpenDirectory(std::string(ParentPath(path))));
  const std::string name(BaseName(path));
  std::string target(PATH_MAX, '\0');
  const ssize_t n =
      ::readlinkat(dir->get(), name.c_str(), target.data(), target.size());
  if (n < 0) return Fail(errno, "readlink " + path);
  target.resize(static_cast<size_t>(n));
  return target;
}

Result<std::string> BaseDirectory::ReadLink(const std::string& path,
                                            uint64_t ino) const {
  const UniqueFd link = TRY(OpenPath(path));
  struct stat st{};
  if (::fstat(link.get(), &st) != 0) return Fail(errno, "stat " + path);
  if (st.st_ino != ino) return Fail(ESTALE, path + " was replaced in the base");
  std::string target(PATH_MAX, '\0');
  const ssize_t n = ::readlinkat(link.get(), "", target.data(), target.size());
  if (n < 0) return Fail(errno, "readlink " + path);
  target.resize(static_cast<size_t>(n));
  return target;
}

Result<std::vector<BaseEntry>> ListIfThere(const BaseDirectory& base,
                                           const std::string& path) {
  auto entries = base.List(path);
  if (!entries && IsGone(entries.error())) return {};
  return entries;
}

Result<std::vector<BaseEntry>> ListIfOpen(const BaseDirectory& base,
                                          const std::string& path) {
  auto entries = base.List(path);
  if (!entries && IsClosedOrGone(entries.error())) return {};
  // To list it is one thing, to look at what is in it another.
  if (entries && !entries->empty()) {
    const auto st = base.Stat(JoinPath(path, entries->front().name));
    if (!st && st.error().code == EACCES) return {};
  }
  return entries;
}

Result<UniqueFd> BaseDirectory::OpenPath(const std::string& path) const {
  if (path.empty()) return OpenAt(root_.get(), ".", O_PATH | O_DIRECTORY);
  const SharedFd dir = TRY(OpenDirectory(std::string(ParentPath(path))));
  return OpenBeneath(dir->get(), std::string(BaseName(path)),
                     O_PATH | O_NOFOLLOW);
}

Result<std::vector<std::string>> BaseDirectory::ListXattrs(
    const std::string& path) const {
  const UniqueFd fd = TRY(OpenPath(path));
  auto names = TrackedXattrNames(fd.get());
  if (!names) return Fail(names.error().code, "listxattr " + path);
  return names;
}

Result<std::string> BaseDirectory::GetXattr(const std::string& path,
                                            const std::string& name) const {
  const UniqueFd fd = TRY(OpenPath(path));
  auto value = XattrOf(ProcPath(fd.get()), name);
  if (!value) return Fail(value.error().code, "getxattr " + path);
  return value;
}

std::string ShownPath(const std::string& path) {
  return path.empty() ? "." : path;
}

bool HasTrackedXattrs(const BaseDirectory& base, const std::string& path) {
  const auto names = base.ListXattrs(path);
  return names && !names->empty();
}

}  // namespace txfs
