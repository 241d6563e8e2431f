// Both names of each function are defined here, so neither may be a macro of
// the other.
#undef _FILE_OFFSET_BITS

#include "tests/journal/disk_calls.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

namespace txfs {
namespace {

using Kind = DiskCall::Kind;

/// Held during a call that is watched.
std::mutex watched_call;
DiskWatch* watch = nullptr;  // guarded by watched_call
/// What is known of it without the lock.
std::atomic<bool> is_watched = false;
std::atomic<bool> is_all_watched = false;
/// What a watch does itself is not for it to see.
thread_local bool watching = false;

// As the C library would make the call.
template <class... Arguments>
long Call(long number, Arguments... arguments) {
  return ::syscall(number, arguments...);
}

std::string PathOf(int fd) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), path, sizeof path);
  return size < 0 ? "" : std::string(path, static_cast<size_t>(size));
}

std::string PathAt(int dir, const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string parent =
      slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const long fd = Call(SYS_openat, dir, parent.c_str(),
                       O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return "";
  const std::string found = PathOf(static_cast<int>(fd));
  Call(SYS_close, fd);
  return found + "/" + path.substr(slash == std::string::npos ? 0 : slash + 1);
}

/// Makes one call, with the watch, if any, in front of it and behind.
template <class Make>
long Watched(DiskCall call, const Make& make) {
  if (watching) return make(call);
  std::unique_lock one_at_a_time(watched_call);
  DiskWatch* const told = watch;
  if (told == nullptr || !call.path.starts_with(told->root())) {
    one_at_a_time.unlock();
    return make(call);
  }
  watching = true;
  const int error = told->Before(call);
  watching = false;
  if (error != 0) return errno = error, -1;
  const bool is_sync = call.kind == Kind::kSync || call.kind == Kind::kSyncAll;
  const long result = is_sync ? 0 : make(call);
  if (result < 0) return result;
  if (call.kind == Kind::kWrite) call.size = static_cast<uint64_t>(result);
  if (call.kind == Kind::kMake) call.fd = static_cast<int>(result);
  watching = true;
  told->After(call);
  watching = false;
  return result;
}

bool IsWatched() { return is_watched && !watching; }

bool IsAllWatched() { return is_all_watched && !watching; }

long WriteAt(int fd, const iovec* parts, int count, off_t offset) {
  if (!IsWatched()) return Call(SYS_pwritev, fd, parts, count, offset, 0L);
  DiskCall call{.kind = Kind::kWrite, .path = PathOf(fd), .fd = fd};
  call.offset = static_cast<uint64_t>(offset);
  for (int i = 0; i < count; ++i) call.size += parts[i].iov_len;
  return Watched(call, [&](const DiskCall& allowed) {
    std::vector<iovec> rest;
    uint64_t size = allowed.size;
    for (int i = 0; i < count && size > 0; ++i) {
      rest.push_back({parts[i].iov_base, std::min(parts[i].iov_len, size)});
      size -= rest.back().iov_len;
    }
    return Call(SYS_pwritev, fd, rest.data(), rest.size(), offset, 0L);
  });
}

/// At the position of `fd`, which is moved on.
long WriteOn(int fd, const iovec* parts, int count) {
  const off_t at = IsWatched() ? ::lseek(fd, 0, SEEK_CUR) : -1;
  if (at < 0) return Call(SYS_writev, fd, parts, count);
  const long written = WriteAt(fd, parts, count, at);
  if (written > 0) ::lseek(fd, at + written, SEEK_SET);
  return written;
}

int OpenAtAnyPlace(int dir, const char* path, int flags, mode_t mode) {
  const auto open = [&](const DiskCall&) {
    return Call(SYS_openat, dir, path, flags | O_LARGEFILE, mode);
  };
  if (!IsWatched() || (flags & (O_CREAT | O_TRUNC)) == 0) {
    return static_cast<int>(open({}));
  }
  return static_cast<int>(Watched({.kind = Kind::kMake,
                                   .path = PathAt(dir, path),
                                   .flags = static_cast<unsigned>(flags)},
                                  open));
}

int SyncFd(long number, int fd) {
  const auto sync = [&](const DiskCall&) { return Call(number, fd); };
  if (!IsWatched()) return static_cast<int>(sync({}));
  return static_cast<int>(
      Watched({.kind = Kind::kSync, .path = PathOf(fd), .fd = fd}, sync));
}

int Truncate(int fd, off_t size) {
  const auto truncate = [&](const DiskCall&) {
    return Call(SYS_ftruncate, fd, size);
  };
  if (!IsWatched()) return static_cast<int>(truncate({}));
  return static_cast<int>(Watched({.kind = Kind::kTruncate,
                                   .path = PathOf(fd),
                                   .fd = fd,
                                   .size = static_cast<uint64_t>(size)},
                                  truncate));
}

int Allocate(int fd, int mode, off_t offset, off_t length) {
  const auto allocate = [&](const DiskCall&) {
    return Call(SYS_fallocate, fd, mode, offset, length);
  };
  if (!IsWatched()) return static_cast<int>(allocate({}));
  return static_cast<int>(Watched({.kind = Kind::kAllocate,
                                   .path = PathOf(fd),
                                   .fd = fd,
                                   .offset = static_cast<uint64_t>(offset),
                                   .size = static_cast<uint64_t>(length)},
                                  allocate));
}

int Rename(int dir, const char* from, int new_dir, const char* to,
           unsigned flags) {
  const auto rename = [&](const DiskCall&) {
    return Call(SYS_renameat2, dir, from, new_dir, to, flags);
  };
  if (!IsWatched()) return static_cast<int>(rename({}));
  return static_cast<int>(Watched({.kind = Kind::kRename,
                                   .path = PathAt(dir, from),
                                   .new_path = PathAt(new_dir, to),
                                   .flags = flags},
                                  rename));
}

int Remove(int dir, const char* path, int flags) {
  const auto remove = [&](const DiskCall&) {
    return Call(SYS_unlinkat, dir, path, flags);
  };
  if (!IsWatched()) return static_cast<int>(remove({}));
  return static_cast<int>(
      Watched({.kind = Kind::kRemove, .path = PathAt(dir, path)}, remove));
}

int MakeDir(int dir, const char* path, mode_t mode) {
  const auto make = [&](const DiskCall&) {
    return Call(SYS_mkdirat, dir, path, mode);
  };
  if (!IsWatched()) return static_cast<int>(make({}));
  return static_cast<int>(
      Watched({.kind = Kind::kMakeDir, .path = PathAt(dir, path)}, make));
}

/// A call that only some watches see.
template <class Make>
int OnlySome(const DiskCall& call, const Make& make) {
  return static_cast<int>(
      Watched(call, [&](const DiskCall&) { return make(); }));
}

/// The descriptor that stands for the object itself: of an empty path, or of
/// one like /proc/self/fd/7; -1: the path leads to it.
int FdOf(int dir, const char* path) {
  constexpr std::string_view kOpenFiles = "/proc/self/fd/";
  if (*path == '\0') return dir;
  if (!std::string_view(path).starts_with(kOpenFiles)) return -1;
  return std::atoi(path + kOpenFiles.size());
}

int Link(int dir, const char* path, int new_dir, const char* new_path,
         int flags) {
  const auto link = [&] {
    return Call(SYS_linkat, dir, path, new_dir, new_path, flags);
  };
  if (!IsAllWatched()) return static_cast<int>(link());
  const int fd = FdOf(dir, path);
  return OnlySome({.kind = Kind::kLink,
                   .path = fd < 0 ? PathAt(dir, path) : PathOf(fd),
                   .new_path = PathAt(new_dir, new_path)},
                  link);
}

template <class Make>
int MakeNode(int dir, const char* path, const Make& make) {
  if (!IsAllWatched()) return static_cast<int>(make());
  return OnlySome({.kind = Kind::kMakeNode, .path = PathAt(dir, path)}, make);
}

template <class Change>
int ChangeAttributes(int fd, const Change& change) {
  if (!IsAllWatched()) return static_cast<int>(change());
  return OnlySome({.kind = Kind::kAttributes, .path = PathOf(fd), .fd = fd},
                  change);
}

template <class Change>
int ChangeAttributes(int dir, const char* path, const Change& change) {
  if (!IsAllWatched()) return static_cast<int>(change());
  const int fd = FdOf(dir, path);
  if (fd >= 0) return ChangeAttributes(fd, change);
  return OnlySome({.kind = Kind::kAttributes, .path = PathAt(dir, path)},
                  change);
}

template <class Change>
int ChangeXattr(const char* path, const Change& change) {
  return ChangeAttributes(AT_FDCWD, path, change);
}

int SyncAll(int fd) {
  const auto sync = [&] { return Call(SYS_syncfs, fd); };
  if (!IsAllWatched()) return static_cast<int>(sync());
  return OnlySome({.kind = Kind::kSyncAll, .path = PathOf(fd), .fd = fd}, sync);
}

}  // namespace

std::string DiskCall::ToString() const {
  static constexpr const char* kNames[] = {
      "make",   "mkdir",  "write", "allocate",  "truncate",   "sync",
      "rename", "remove", "link",  "make node", "attributes", "sync all"};
  return std::string(kNames[static_cast<size_t>(kind)]) + " " + path;
}

void DiskWatch::Begin() {
  const std::scoped_lock no_call(watched_call);
  watch = this;
  is_watched = true;
  is_all_watched = sees_everything();
}

void DiskWatch::End() {
  const std::scoped_lock no_call(watched_call);
  watch = nullptr;
  is_watched = false;
  is_all_watched = false;
}

}  // namespace txfs

// The C library's functions, as this program, LMDB included, calls them.
extern "C" {

ssize_t pwritev(int fd, const iovec* parts, int count, off_t offset) {
  return txfs::WriteAt(fd, parts, count, offset);
}
ssize_t pwritev64(int fd, const iovec* parts, int count, off64_t offset) {
  return txfs::WriteAt(fd, parts, count, offset);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  const iovec part{const_cast<void*>(bytes), size};
  return txfs::WriteAt(fd, &part, 1, offset);
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off64_t offset) {
  const iovec part{const_cast<void*>(bytes), size};
  return txfs::WriteAt(fd, &part, 1, offset);
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return txfs::WriteOn(fd, parts, count);
}
ssize_t write(int fd, const void* bytes, size_t size) {
  const iovec part{const_cast<void*>(bytes), size};
  return txfs::WriteOn(fd, &part, 1);
}
int fsync(int fd) { return txfs::SyncFd(SYS_fsync, fd); }
int fdatasync(int fd) { return txfs::SyncFd(SYS_fdatasync, fd); }
int ftruncate(int fd, off_t size) noexcept { return txfs::Truncate(fd, size); }
int ftruncate64(int fd, off64_t size) noexcept {
  return txfs::Truncate(fd, size);
}
int fallocate(int fd, int mode, off_t offset, off_t length) {
  return txfs::Allocate(fd, mode, offset, length);
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
  return txfs::Allocate(fd, mode, offset, length);
}
int renameat(int dir, const char* from, int new_dir, const char* to) noexcept {
  return txfs::Rename(dir, from, new_dir, to, 0);
}
int renameat2(int dir, const char* from, int new_dir, const char* to,
              unsigned flags) noexcept {
  return txfs::Rename(dir, from, new_dir, to, flags);
}
int unlinkat(int dir, const char* path, int flags) noexcept {
  return txfs::Remove(dir, path, flags);
}
int mkdirat(int dir, const char* path, mode_t mode) noexcept {
  return txfs::MakeDir(dir, path, mode);
}
int linkat(int dir, const char* path, int new_dir, const char* new_path,
           int flags) noexcept {
  return txfs::Link(dir, path, new_dir, new_path, flags);
}
int symlinkat(const char* target, int dir, const char* path) noexcept {
  return txfs::MakeNode(
      dir, path, [&] { return txfs::Call(SYS_symlinkat, target, dir, path); });
}
int mknodat(int dir, const char* path, mode_t mode, dev_t device) noexcept {
  return txfs::MakeNode(dir, path, [&] {
    return txfs::Call(SYS_mknodat, dir, path, mode,
                      static_cast<unsigned>(device));
  });
}
int fchmod(int fd, mode_t mode) noexcept {
  return txfs::ChangeAttributes(
      fd, [&] { return txfs::Call(SYS_fchmod, fd, mode); });
}
int fchownat(int dir, const char* path, uid_t uid, gid_t gid,
             int flags) noexcept {
  return txfs::ChangeAttributes(dir, path, [&] {
    return txfs::Call(SYS_fchownat, dir, path, uid, gid, flags);
  });
}
int futimens(int fd, const timespec times[2]) noexcept {
  return txfs::ChangeAttributes(
      fd, [&] { return txfs::Call(SYS_utimensat, fd, nullptr, times, 0); });
}
int utimensat(int dir, const char* path, const timespec times[2],
              int flags) noexcept {
  return txfs::ChangeAttributes(dir, path, [&] {
    return txfs::Call(SYS_utimensat, dir, path, times, flags);
  });
}
int setxattr(const char* path, const char* name, const void* value, size_t size,
             int flags) noexcept {
  return txfs::ChangeXattr(path, [&] {
    return txfs::Call(SYS_setxattr, path, name, value, size, flags);
  });
}
int removexattr(const char* path, const char* name) noexcept {
  return txfs::ChangeXattr(
      path, [&] { return txfs::Call(SYS_removexattr, path, name); });
}
int fsetxattr(int fd, const char* name, const void* value, size_t size,
              int flags) noexcept {
  return txfs::ChangeAttributes(fd, [&] {
    return txfs::Call(SYS_fsetxattr, fd, name, value, size, flags);
  });
}
int syncfs(int fd) noexcept { return txfs::SyncAll(fd); }
int chmod(const char* path, mode_t mode) noexcept {
  return txfs::ChangeAttributes(AT_FDCWD, path, [&] {
    return txfs::Call(SYS_fchmodat, AT_FDCWD, path, mode);
  });
}
// As the C library: flags the kernel's call does not have are not for us.
int fchmodat(int dir, const char* path, mode_t mode, int flags) noexcept {
  if (flags != 0) return errno = EOPNOTSUPP, -1;
  return txfs::ChangeAttributes(
      dir, path, [&] { return txfs::Call(SYS_fchmodat, dir, path, mode); });
}

static mode_t ModeOf(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}
int openat(int dir, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return txfs::OpenAtAnyPlace(dir, path, flags, mode);
}
int openat64(int dir, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return txfs::OpenAtAnyPlace(dir, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return txfs::OpenAtAnyPlace(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = ModeOf(flags, arguments);
  va_end(arguments);
  return txfs::OpenAtAnyPlace(AT_FDCWD, path, flags, mode);
}

}  // extern "C"
