#include "journal/support/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "journal/support/crash_point.h"
#include "journal/support/io.h"

namespace txfs {

Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags,
                        mode_t mode) {
  for (;;) {
    UniqueFd fd(::openat(dir, path.c_str(), flags | O_CLOEXEC, mode));
    if (fd.valid()) return fd;
    if (errno != EINTR) return Fail(errno, "open " + path);
  }
}

namespace {

/// Where the kernel has no openat2 (before 5.6): one name after the other.
Result<UniqueFd> WalkBeneath(int dir, std::string_view path) {
  UniqueFd at;
  while (!path.empty()) {
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    if (name.empty() || name == "..") return Fail(EXDEV, "open " + name);
    at = TRY(OpenAt(at.valid() ? at.get() : dir, name,
                    O_PATH | O_DIRECTORY | O_NOFOLLOW));
  }
  return at;
}

/// openat2(2) with O_PATH; ENOSYS.
Result<UniqueFd> OpenResolved(int dir, const std::string& path, int flags,
                              uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<uint64_t>(O_PATH | O_CLOEXEC | flags);
  how.resolve = resolve;
  for (;;) {
    const long fd = ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how);
    if (fd >= 0) return UniqueFd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) return Fail(errno, "open " + path);
  }
}

/// Opens the directory `path` beneath `dir`, not to be read.
Result<UniqueFd> OpenBeneath(int dir, const std::string& path) {
  auto fd = OpenResolved(
      dir, path, O_DIRECTORY,
      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (fd || fd.error().code != ENOSYS) return fd;
  return WalkBeneath(dir, path);
}

std::string FullPath(int dir, const std::string& path) {
  return dir == AT_FDCWD ? path : PathOfFd(dir) + "/" + path;
}

std::unexpected<Error> NotOurs(int dir, const std::string& path, int code,
                               const char* what) {
  return Fail(code, FullPath(dir, path) + " is " + what,
              "another program made it: move it elsewhere");
}

/// A name in an open directory, for calls that take one and follow no symbolic
/// link at the end of it.
class Place {
 public:
  /// Of `path` beneath `dir`; with AT_FDCWD, of any path.
  static Result<Place> Of(int dir, const std::string& path) {
    const size_t slash = path.rfind('/');
    if (dir == AT_FDCWD || slash == std::string::npos) {
      if (dir == AT_FDCWD || path != "..") return Place(dir, path);
      return Fail(EXDEV, "open " + path);
    }
    const std::string name = path.substr(slash + 1);
    if (name.empty() || name == "..") return Fail(EXDEV, "open " + path);
    auto parent = OpenBeneath(dir, path.substr(0, slash));
    if (parent) return Place(*std::move(parent), name);
    if (parent.error().code == ELOOP || parent.error().code == EXDEV) {
      return NotOurs(dir, path.substr(0, slash), parent.error().code,
                     "not a directory");
    }
    parent.error().message = "open " + path;
    return std::unexpected(std::move(parent).error());
  }

  [[nodiscard]] int dir() const {
    return parent_.valid() ? parent_.get() : dir_;
  }
  [[nodiscard]] const char* name() const { return name_.c_str(); }

 private:
  Place(int dir, std::string name) : dir_(dir), name_(std::move(name)) {}
  Place(UniqueFd parent, std::string name)
      : parent_(std::move(parent)), name_(std::move(name)) {}

  int dir_ = -1;
  UniqueFd parent_;  ///< of a name in another directory
  std::string name_;
};

Result<UniqueFd> OpenPlace(const Place& place, int flags, mode_t mode) {
  return OpenAt(place.dir(), place.name(), flags | O_NOFOLLOW | O_NONBLOCK,
                mode);
}

}  // namespace

Result<UniqueFd> OpenName(const std::string& path, int flags) {
  auto fd = OpenResolved(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS);
  if (fd || fd.error().code != ENOSYS) return fd;
  const size_t slash = path.rfind('/');
  UniqueFd parent = TRY(OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  if (slash != 0) {
    parent = TRY(WalkBeneath(parent.get(), path.substr(1, slash - 1)));
  }
  return OpenAt(parent.get(), path.substr(slash + 1),
                O_PATH | O_NOFOLLOW | flags);
}

Result<UniqueFd> OpenFileBelow(int dir, const std::string& path, int flags,
                               mode_t mode) {
  const Place place = TRY(Place::Of(dir, path));
  struct stat st{};
  const int found =
      ::fstatat(place.dir(), place.name(), &st, AT_SYMLINK_NOFOLLOW);
  // To open a device can do something already.
  if (found == 0 && !S_ISREG(st.st_mode)) {
    return NotOurs(dir, path, EBADMSG, "not a regular file");
  }
  auto fd = OpenPlace(place, flags, mode);
  if (!fd) {
    fd.error().message = "open " + path;
    return fd;
  }
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, "stat " + path);
  if (S_ISREG(st.st_mode)) return fd;
  return NotOurs(dir, path, EBADMSG, "not a regular file");
}

Result<UniqueFd> OpenOwnFileBelow(int dir, const std::string& path, int flags,
                                  mode_t mode) {
  UniqueFd fd = TRY(OpenFileBelow(dir, path, flags & ~O_TRUNC, mode));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat " + path);
  if (st.st_nlink > 1) {
    return NotOurs(dir, path, EBADMSG, "a file with other hard links");
  }
  if ((flags & O_TRUNC) != 0 && st.st_size != 0 &&
      ::ftruncate(fd.get(), 0) != 0) {
    return Fail(errno, "truncate " + path);
  }
  return fd;
}

Result<UniqueFd> OpenDirectoryBelow(int dir, const std::string& path,
                                    int flags) {
  const Place place = TRY(Place::Of(dir, path));
  auto fd = OpenPlace(place, flags | O_DIRECTORY, 0);
  if (fd) return fd;
  if (fd.error().code == ENOTDIR || fd.error().code == ELOOP) {
    return NotOurs(dir, path, ENOTDIR, "not a directory");
  }
  fd.error().message = "open " + path;
  return fd;
}

Result<struct stat> StatBelow(int dir, const std::string& path) {
  const Place place = TRY(Place::Of(dir, path));
  struct stat st{};
  if (::fstatat(place.dir(), place.name(), &st, AT_SYMLINK_NOFOLLOW) == 0) {
    return st;
  }
  return Fail(errno, "stat " + path);
}

Status RenameBelow(int dir, const std::string& from, const std::string& to) {
  const Place source = TRY(Place::Of(dir, from));
  const Place target = TRY(Place::Of(dir, to));
  if (::renameat(source.dir(), source.name(), target.dir(), target.name()) ==
      0) {
    return {};
  }
  return Fail(errno, "rename " + from);
}

Result<size_t> ReadFully(int fd, uint64_t offset, MutableByteSpan out) {
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done,
                              static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "read");
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

Status WriteFully(int fd, uint64_t offset, ByteSpan bytes) {
  while (!bytes.empty()) {
    CrashPoint();
    const ssize_t n =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return Fail(error, "write " + PathOfFd(fd));
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

namespace {

/// Of a pipe, which has no size.
Result<std::string> ReadToEnd(int fd, const std::string& path, size_t limit) {
  constexpr size_t kPiece = 64 << 10;
  std::string content;
  for (;;) {
    const size_t size = content.size();
    content.resize(size + kPiece);
    const ssize_t n = ::read(fd, content.data() + size, kPiece);
    if (n < 0 && errno != EINTR) return Fail(errno, "read " + path);
    content.resize(size + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (content.size() > limit) return Fail(EFBIG, "read " + path);
    if (n == 0) return content;
  }
}

/// A large file that is nearly nothing but holes costs nothing to make, and
/// all of its size to read.
bool IsHollow(const struct stat& st) {
  constexpr off_t kLarge = 64 << 20;
  constexpr off_t kStatBlock = 512;
  constexpr off_t kBestCompression = 64;
  return st.st_size > kLarge &&
         st.st_blocks * kStatBlock < st.st_size / kBestCompression;
}

/// Of another directory than those below a store the path may be anything.
Result<UniqueFd> OpenDirectory(int dir, const std::string& path) {
  if (dir == AT_FDCWD) return OpenAt(dir, path, O_RDONLY | O_DIRECTORY);
  return OpenDirectoryBelow(dir, path);
}

}  // namespace

Result<std::string> ReadWholeFile(int dir, const std::string& path,
                                  size_t limit) {
  const UniqueFd fd = TRY(dir == AT_FDCWD ? OpenAt(dir, path, O_RDONLY)
                                          : OpenFileBelow(dir, path, O_RDONLY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat " + path);
  if (!S_ISREG(st.st_mode)) return ReadToEnd(fd.get(), path, limit);
  const auto size = static_cast<uint64_t>(st.st_size);
  if (size > limit || IsHollow(st)) return Fail(EFBIG, "read " + path);
  std::string content(size, '\0');
  const size_t n = TRY(ReadFully(
      fd.get(), 0,
      std::as_writable_bytes(std::span(content.data(), content.size()))));
  content.resize(n);
  return content;
}

namespace {

std::string TemporaryOf(const std::string& path) {
  return path + std::string(kTemporarySuffix);
}

/// The temporary neighbour that MakeRoomFor may have made, or a new one. What
/// else is there is not written to.
Result<UniqueFd> OpenTemporary(int dir, const std::string& path, mode_t mode) {
  auto fd = OpenOwnFileBelow(dir, path, O_WRONLY | O_CREAT, mode);
  struct stat st{};
  const bool ours = fd && ::fstat(fd->get(), &st) == 0 &&
                    (dir == AT_FDCWD || st.st_uid == ::geteuid());
  if (ours || (!fd && fd.error().code != EBADMSG)) return fd;
  const Place place = TRY(Place::Of(dir, path));
  if (::unlinkat(place.dir(), place.name(), 0) != 0) {
    return NotOurs(dir, path, errno, "not a regular file");
  }
  return OpenFileBelow(dir, path, O_WRONLY | O_CREAT | O_EXCL, mode);
}

}  // namespace

Status PutFile(int dir, const std::string& path, std::string_view content,
               mode_t mode) {
  const std::string temporary = TemporaryOf(path);
  CrashPoint();
  const UniqueFd fd = TRY(OpenTemporary(dir, temporary, mode));
  TRY(WriteFully(fd.get(), 0, AsBytes(content)));
  // Blocks that MakeRoomFor took are used, and what is too many given back.
  if (::ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0) {
    return Fail(errno, "truncate " + temporary);
  }
  CrashPoint();
  if (SyncOfStore(fd.get()) != 0) return Fail(errno, "sync " + temporary);
  CrashPoint();
  return RenameBelow(dir, temporary, path);
}

Status MakeRoomFor(int dir, const std::string& path, uint64_t bytes) {
  constexpr uint64_t kBlock = 4096;
  CrashPoint();
  const UniqueFd fd = TRY(OpenTemporary(dir, TemporaryOf(path), 0600));
  auto taken = Preallocate(Io::System(), fd.get(),
                           (bytes + kBlock - 1) / kBlock * kBlock);
  if (taken) return {};
  return Fail(taken.error().code, "reserve space for " + path);
}

Status ReplaceFile(int dir, const std::string& path, std::string_view content,
                   mode_t mode) {
  TRY(PutFile(dir, path, content, mode));
  const size_t slash = path.rfind('/');
  const UniqueFd parent = TRY(OpenDirectory(
      dir, slash == std::string::npos ? "." : path.substr(0, slash)));
  CrashPoint();
  if (SyncOfStore(parent.get()) != 0) {
    return Fail(errno, "sync directory of " + path);
  }
  return {};
}

// Not with readdir(3): a buffer from the heap makes malloc sort first what a
// large reply has given back, which takes longer than all else of a savepoint.
Result<std::vector<std::string>> ListNames(int dir, const std::string& path) {
  const UniqueFd fd = TRY(OpenDirectory(dir, path));
  std::vector<std::string> names;
  alignas(dirent64) std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t filled = ::getdents64(fd.get(), buffer.data(), buffer.size());
    // ENOENT: somebody removed it meanwhile.
    if (filled == 0 || (filled < 0 && errno == ENOENT)) break;
    if (filled < 0) return Fail(errno, "read directory " + path);
    for (ssize_t at = 0; at < filled;) {
      const auto* const entry =
          reinterpret_cast<const dirent64*>(buffer.data() + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      at += entry->d_reclen;
    }
  }
  std::ranges::sort(names);
  return names;
}

Result<bool> Exists(int dir, const std::string& path) {
  const auto st = StatBelow(dir, path);
  if (st) return true;
  if (st.error().code == ENOENT) return false;
  return std::unexpected(st.error());
}

Result<uint64_t> BytesOnDisk(int dir, const std::string& path) {
  constexpr uint64_t kStatBlock = 512;
  const auto st = StatBelow(dir, path);
  if (!st && st.error().code == ENOENT) return uint64_t{0};
  if (!st) return std::unexpected(st.error());
  uint64_t bytes = static_cast<uint64_t>(st->st_blocks) * kStatBlock;
  if (!S_ISDIR(st->st_mode)) return bytes;
  const auto fd = OpenDirectoryBelow(dir, path);
  if (!fd) return bytes;
  const auto names = ListNames(fd->get(), ".");
  // Somebody else may be deleting it.
  if (!names) return bytes;
  for (const std::string& name : *names) {
    bytes += TRY(BytesOnDisk(fd->get(), name));
  }
  return bytes;
}

Status SyncDirectory(int dir, const std::string& path) {
  const UniqueFd fd = TRY(OpenDirectory(dir, path));
  CrashPoint();
  if (SyncOfStore(fd.get()) == 0) return {};
  const int error = errno;
  return Fail(error, "sync " + (path == "." ? PathOfFd(dir) : path));
}

namespace {

/// How many directories RemoveTree opens within each other: beyond, it would
/// run out of descriptors, or of stack.
constexpr int kRemoveDepth = 64;

/// Of the RemoveTree of this thread.
struct Removal {
  int depth = 0;
  int top = -1;         ///< the directory at depth 1
  bool hoists = false;  ///< something came to be in `top`
  uint64_t hoisted = 0;
};
thread_local Removal removal;

/// Moves a directory that lies too deep to where it is reached, to be removed
/// there. Nothing is done to what is no directory.
Status Hoist(int directory, const std::string& name) {
  struct stat st{};
  const int found =
      ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW);
  if (found != 0 || !S_ISDIR(st.st_mode)) return {};
  // To be moved, it must be ours to write to.
  if ((st.st_mode & S_IRWXU) != S_IRWXU) {
    std::ignore = ::fchmodat(directory, name.c_str(), 0700, 0);
  }
  for (;;) {
    const std::string to = "hoisted." + std::to_string(removal.hoisted++);
    CrashPoint();
    if (::renameat2(directory, name.c_str(), removal.top, to.c_str(),
                    RENAME_NOREPLACE) == 0) {
      removal.hoists = true;
      return {};
    }
    if (errno == ENOENT) return {};
    if (errno != EEXIST) return Fail(errno, "remove " + name);
  }
}

Status RemoveNames(int directory) {
  for (const std::string& name : TRY(ListNames(directory, "."))) {
    if (removal.depth >= kRemoveDepth) TRY(Hoist(directory, name));
    TRY(RemoveTree(directory, name));
  }
  return {};
}

Status RemoveContents(const UniqueFd& directory) {
  if (removal.depth++ == 0) removal = {.depth = 1, .top = directory.get()};
  Status removed;
  do {
    if (removal.depth == 1) removal.hoists = false;
    removed = RemoveNames(directory.get());
  } while (removed && removal.depth == 1 && removal.hoists);
  --removal.depth;
  return removed;
}

}  // namespace

Status RemoveTree(int dir, const std::string& path) {
  CrashPoint();
  const auto place = Place::Of(dir, path);
  // What it would be in is gone, too.
  if (!place && place.error().code == ENOENT) return {};
  if (!place) return std::unexpected(place.error());
  const char* const name = place->name();
  if (::unlinkat(place->dir(), name, 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return Fail(errno, "remove " + path);
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto fd = OpenAt(place->dir(), name, kFlags);
  if (!fd && fd.error().code == EACCES) {
    // A directory of the agent's may deny its owner; ours to delete all the
    // same.
    if (::fchmodat(place->dir(), name, 0700, 0) != 0)
      return Fail(errno, "chmod " + path);
    fd = OpenAt(place->dir(), name, kFlags);
  }
  if (!fd) return std::unexpected(std::move(fd).error());
  auto removed = RemoveContents(*fd);
  if (!removed && removed.error().code == EACCES &&
      ::fchmodat(place->dir(), name, 0700, 0) == 0) {
    removed = RemoveContents(TRY(OpenAt(place->dir(), name, kFlags)));
  }
  if (!removed) return removed;
  CrashPoint();
  if (::unlinkat(place->dir(), name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return Fail(errno, "rmdir " + path);
  }
  return {};
}

std::string PathOfFd(int fd) {
  char path[4096];
  const ssize_t size = ::readlink(
      ("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  if (size < 0) return "(unknown path)";
  return {path, static_cast<size_t>(size)};
}

Status MakeDirectoryAt(int dir, const std::string& path, mode_t mode) {
  const Place place = TRY(Place::Of(dir, path));
  CrashPoint();
  if (::mkdirat(place.dir(), place.name(), mode) == 0 || errno == EEXIST) {
    return {};
  }
  return Fail(errno, "mkdir " + path);
}

}  // namespace txfs
