#include "journal/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "journal/base/crash_point.h"
#include "journal/base/io.h"

namespace txfs {

Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags,
                        mode_t mode) {
  for (;;) {
    UniqueFd fd(::openat(dir, path.c_str(), flags | O_CLOEXEC, mode));
    if (fd.valid()) return fd;
    if (errno != EINTR) return Fail(errno, "open " + path);
  }
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

}  // namespace

Result<std::string> ReadWholeFile(int dir, const std::string& path,
                                  size_t limit) {
  const UniqueFd fd = TRY(OpenAt(dir, path, O_RDONLY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, "stat " + path);
  if (!S_ISREG(st.st_mode)) return ReadToEnd(fd.get(), path, limit);
  if (static_cast<uint64_t>(st.st_size) > limit)
    return Fail(EFBIG, "read " + path);
  std::string content(static_cast<size_t>(st.st_size), '\0');
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

}  // namespace

Status PutFile(int dir, const std::string& path, std::string_view content,
               mode_t mode) {
  const std::string temporary = TemporaryOf(path);
  CrashPoint();
  const UniqueFd fd = TRY(OpenAt(dir, temporary, O_WRONLY | O_CREAT, mode));
  TRY(WriteFully(fd.get(), 0, AsBytes(content)));
  // Blocks that MakeRoomFor took are used, and what is too many given back.
  if (::ftruncate(fd.get(), static_cast<off_t>(content.size())) != 0) {
    return Fail(errno, "truncate " + temporary);
  }
  CrashPoint();
  if (::fsync(fd.get()) != 0) return Fail(errno, "sync " + temporary);
  CrashPoint();
  if (::renameat(dir, temporary.c_str(), dir, path.c_str()) != 0) {
    return Fail(errno, "rename " + temporary);
  }
  return {};
}

Status MakeRoomFor(int dir, const std::string& path, uint64_t bytes) {
  constexpr uint64_t kBlock = 4096;
  CrashPoint();
  const UniqueFd fd =
      TRY(OpenAt(dir, TemporaryOf(path), O_WRONLY | O_CREAT, 0600));
  auto taken = Preallocate(Io::System(), fd.get(),
                           (bytes + kBlock - 1) / kBlock * kBlock);
  if (taken) return {};
  return Fail(taken.error().code, "make room for " + path);
}

Status ReplaceFile(int dir, const std::string& path, std::string_view content,
                   mode_t mode) {
  TRY(PutFile(dir, path, content, mode));
  const size_t slash = path.rfind('/');
  const UniqueFd parent =
      TRY(OpenAt(dir, slash == std::string::npos ? "." : path.substr(0, slash),
                 O_RDONLY | O_DIRECTORY));
  CrashPoint();
  if (::fsync(parent.get()) != 0)
    return Fail(errno, "sync directory of " + path);
  return {};
}

// Not with readdir(3): a buffer from the heap makes malloc sort first what a
// large reply has given back, which takes longer than all else of a savepoint.
Result<std::vector<std::string>> ListNames(int dir, const std::string& path) {
  const UniqueFd fd = TRY(OpenAt(dir, path, O_RDONLY | O_DIRECTORY));
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
  struct stat st{};
  if (::fstatat(dir, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return Fail(errno, "stat " + path);
}

Result<uint64_t> BytesOnDisk(int dir, const std::string& path) {
  constexpr uint64_t kStatBlock = 512;
  struct stat st{};
  if (::fstatat(dir, path.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<uint64_t>(0) : Fail(errno, "stat " + path);
  }
  uint64_t bytes = static_cast<uint64_t>(st.st_blocks) * kStatBlock;
  if (!S_ISDIR(st.st_mode)) return bytes;
  const auto fd = OpenAt(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
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
  const UniqueFd fd = TRY(OpenAt(dir, path, O_RDONLY | O_DIRECTORY));
  CrashPoint();
  if (::fsync(fd.get()) == 0) return {};
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
  if (::unlinkat(dir, path.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return Fail(errno, "remove " + path);
  auto fd = OpenAt(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd && fd.error().code == EACCES) {
    // A directory of the agent's may deny its owner; ours to delete all the
    // same.
    if (::fchmodat(dir, path.c_str(), 0700, 0) != 0)
      return Fail(errno, "chmod " + path);
    fd = OpenAt(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  }
  if (!fd) return std::unexpected(std::move(fd).error());
  auto removed = RemoveContents(*fd);
  if (!removed && removed.error().code == EACCES &&
      ::fchmodat(dir, path.c_str(), 0700, 0) == 0) {
    removed = RemoveContents(
        TRY(OpenAt(dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)));
  }
  if (!removed) return removed;
  CrashPoint();
  if (::unlinkat(dir, path.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
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
  CrashPoint();
  if (::mkdirat(dir, path.c_str(), mode) == 0 || errno == EEXIST) return {};
  return Fail(errno, "mkdir " + path);
}

}  // namespace txfs
