#include "tests/conformance/posix_driver.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

namespace txfs::testing {
namespace {

int Fd(Handle handle) { return static_cast<int>(handle); }

/// The result of a system call that returns -1 and errno on failure.
Status Check(long result, const char* call) {
  if (result < 0) return Fail(errno, call);
  return {};
}

template <class T>
Result<T> CheckValue(long result, const char* call) {
  if (result < 0) return Fail(errno, call);
  return static_cast<T>(result);
}

/// An entry of getdents64(2), which glibc declares only as part of readdir.
Entry DecodeEntry(const char* raw, size_t& length) {
  dirent64 entry;
  std::memcpy(&entry, raw, offsetof(dirent64, d_name));
  length = entry.d_reclen;
  return {.name = raw + offsetof(dirent64, d_name),
          .cookie = static_cast<uint64_t>(entry.d_off),
          .ino = entry.d_ino,
          .type = entry.d_type};
}

}  // namespace

Result<Handle> PosixDriver::Open(const std::string& path, int flags,
                                 mode_t mode) {
  const int flags_used = flags | O_CLOEXEC | O_NONBLOCK;
  const auto handle =
      TRY(CheckValue<Handle>(open(At(path).c_str(), flags_used, mode), "open"));
  const auto st = StatOf(handle);
  if (st && !S_ISFIFO(st->st_mode)) return handle;
  TRY(Close(handle));
  return Fail(st ? ENXIO : st.error().code, "open");
}

Status PosixDriver::Close(Handle handle) {
  return Check(close(Fd(handle)), "close");
}

Result<std::string> PosixDriver::ReadAt(Handle handle, uint64_t offset,
                                        size_t length) {
  std::string content(length, '\0');
  content.resize(TRY(CheckValue<size_t>(
      pread(Fd(handle), content.data(), length, static_cast<off_t>(offset)),
      "pread")));
  return content;
}

Result<size_t> PosixDriver::WriteAt(Handle handle, uint64_t offset,
                                    std::string_view bytes) {
  return CheckValue<size_t>(pwrite(Fd(handle), bytes.data(), bytes.size(),
                                   static_cast<off_t>(offset)),
                            "pwrite");
}

Result<struct stat> PosixDriver::StatOf(Handle handle) {
  struct stat st{};
  TRY(Check(fstat(Fd(handle), &st), "fstat"));
  return st;
}

Status PosixDriver::LinkOf(Handle handle, const std::string& path) {
  const std::string file = "/proc/self/fd/" + std::to_string(Fd(handle));
  return Check(linkat(AT_FDCWD, file.c_str(), AT_FDCWD, At(path).c_str(),
                      AT_SYMLINK_FOLLOW),
               "linkat");
}

Result<std::optional<Timestamp>> PosixDriver::BirthOf(const std::string& path) {
  struct statx stx{};
  TRY(Check(
      statx(AT_FDCWD, At(path).c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx),
      "statx"));
  if ((stx.stx_mask & STATX_BTIME) == 0) return std::nullopt;
  return Timestamp{stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
}

Status PosixDriver::TruncateOf(Handle handle, uint64_t size) {
  return Check(ftruncate(Fd(handle), static_cast<off_t>(size)), "ftruncate");
}

Status PosixDriver::Allocate(Handle handle, int mode, uint64_t offset,
                             uint64_t length) {
  return Check(fallocate(Fd(handle), mode, static_cast<off_t>(offset),
                         static_cast<off_t>(length)),
               "fallocate");
}

Result<uint64_t> PosixDriver::Seek(Handle handle, uint64_t offset, int whence) {
  return CheckValue<uint64_t>(
      lseek(Fd(handle), static_cast<off_t>(offset), whence), "lseek");
}

Status PosixDriver::Sync(Handle handle) {
  return Check(fsync(Fd(handle)), "fsync");
}

Result<size_t> PosixDriver::CopyRange(Handle from, uint64_t from_offset,
                                      Handle to, uint64_t to_offset,
                                      size_t length) {
  auto in = static_cast<off64_t>(from_offset),
       out = static_cast<off64_t>(to_offset);
  return CheckValue<size_t>(
      copy_file_range(Fd(from), &in, Fd(to), &out, length, 0),
      "copy_file_range");
}

Status PosixDriver::Mkdir(const std::string& path, mode_t mode) {
  return Check(mkdir(At(path).c_str(), mode), "mkdir");
}

Status PosixDriver::Rmdir(const std::string& path) {
  return Check(rmdir(At(path).c_str()), "rmdir");
}

Status PosixDriver::Unlink(const std::string& path) {
  return Check(unlink(At(path).c_str()), "unlink");
}

Status PosixDriver::Rename(const std::string& from, const std::string& to,
                           unsigned flags) {
  return Check(
      renameat2(AT_FDCWD, At(from).c_str(), AT_FDCWD, At(to).c_str(), flags),
      "rename");
}

Status PosixDriver::Link(const std::string& existing, const std::string& path) {
  return Check(link(At(existing).c_str(), At(path).c_str()), "link");
}

Status PosixDriver::Symlink(const std::string& target,
                            const std::string& path) {
  return Check(symlink(target.c_str(), At(path).c_str()), "symlink");
}

Result<std::string> PosixDriver::Readlink(const std::string& path) {
  std::string target(PATH_MAX, '\0');
  target.resize(TRY(CheckValue<size_t>(
      readlink(At(path).c_str(), target.data(), target.size()), "readlink")));
  return target;
}

Status PosixDriver::Mkfifo(const std::string& path, mode_t mode) {
  return Check(mkfifo(At(path).c_str(), mode), "mkfifo");
}

Status PosixDriver::Chmod(const std::string& path, mode_t mode) {
  return Check(chmod(At(path).c_str(), mode), "chmod");
}

Status PosixDriver::Chown(const std::string& path, uid_t uid, gid_t gid) {
  return Check(lchown(At(path).c_str(), uid, gid), "lchown");
}

Status PosixDriver::Utimens(const std::string& path, const FileTimes& times) {
  const timespec both[] = {times.atime, times.mtime};
  return Check(utimensat(AT_FDCWD, At(path).c_str(), both, AT_SYMLINK_NOFOLLOW),
               "utimensat");
}

Status PosixDriver::Truncate(const std::string& path, uint64_t size) {
  return Check(truncate(At(path).c_str(), static_cast<off_t>(size)),
               "truncate");
}

Result<struct stat> PosixDriver::Stat(const std::string& path) {
  struct stat st{};
  TRY(Check(lstat(At(path).c_str(), &st), "lstat"));
  return st;
}

Result<struct statvfs> PosixDriver::StatFs() {
  struct statvfs st{};
  TRY(Check(statvfs(root_.c_str(), &st), "statvfs"));
  return st;
}

Status PosixDriver::SetXattr(const std::string& path, const std::string& name,
                             std::string_view value, int flags) {
  return Check(lsetxattr(At(path).c_str(), name.c_str(), value.data(),
                         value.size(), flags),
               "lsetxattr");
}

Result<std::string> PosixDriver::GetXattr(const std::string& path,
                                          const std::string& name) {
  std::string value(XATTR_SIZE_MAX, '\0');
  value.resize(TRY(CheckValue<size_t>(
      lgetxattr(At(path).c_str(), name.c_str(), value.data(), value.size()),
      "lgetxattr")));
  return value;
}

Result<std::vector<std::string>> PosixDriver::ListXattrs(
    const std::string& path) {
  std::string raw(XATTR_LIST_MAX, '\0');
  raw.resize(TRY(CheckValue<size_t>(
      llistxattr(At(path).c_str(), raw.data(), raw.size()), "llistxattr")));
  std::vector<std::string> names;
  for (size_t at = 0; at < raw.size(); at += names.back().size() + 1) {
    names.emplace_back(raw.c_str() + at);
  }
  return names;
}

Status PosixDriver::RemoveXattr(const std::string& path,
                                const std::string& name) {
  return Check(lremovexattr(At(path).c_str(), name.c_str()), "lremovexattr");
}

Result<Handle> PosixDriver::OpenDir(const std::string& path) {
  return Open(path, O_RDONLY | O_DIRECTORY, 0);
}

Status PosixDriver::CloseDir(Handle handle) { return Close(handle); }

Result<std::vector<Entry>> PosixDriver::ReadDir(Handle handle, uint64_t cookie,
                                                size_t count) {
  TRY(Check(lseek(Fd(handle), static_cast<off_t>(cookie), SEEK_SET), "lseek"));
  // One entry of the longest name always fits.
  std::string buffer(std::max<size_t>(count * 32, 512), '\0');
  const auto length = TRY(CheckValue<size_t>(
      syscall(SYS_getdents64, Fd(handle), buffer.data(), buffer.size()),
      "getdents64"));
  std::vector<Entry> entries;
  size_t entry_length = 0;
  for (size_t at = 0; at < length; at += entry_length) {
    entries.push_back(DecodeEntry(buffer.data() + at, entry_length));
  }
  return entries;
}

void PosixDriver::ActAs(uid_t uid, gid_t gid) {
  // The group first: an ordinary user may not change it.
  setfsgid(gid);
  setfsuid(uid);
}

}  // namespace txfs::testing
