#include "journal/support/directory_id.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "journal/support/bytes.h"
#include "journal/support/checksum.h"

namespace txfs {
namespace {

/// struct fsuuid2 of linux/fs.h, which Debian 12's headers do not have.
struct FsUuid {
  uint8_t size = 0;
  std::array<uint8_t, 16> bytes{};
};
constexpr unsigned long kGetFsUuid = _IOR(0x15, 0, FsUuid);

std::string UuidOf(int fd) {
  FsUuid uuid;
  if (::ioctl(fd, kGetFsUuid, &uuid) != 0) return "";
  const size_t size = std::min<size_t>(uuid.size, uuid.bytes.size());
  return {reinterpret_cast<const char*>(uuid.bytes.data()), size};
}

/// Empty where the filesystem has no handles.
std::string HandleOf(int fd) {
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ>
      buffer{};
  auto* const handle = reinterpret_cast<file_handle*>(buffer.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (::name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH) != 0) {
    return "";
  }
  const uint32_t type = static_cast<uint32_t>(handle->handle_type);
  std::string bytes(reinterpret_cast<const char*>(&type), sizeof type);
  return bytes.append(reinterpret_cast<const char*>(handle->f_handle),
                      handle->handle_bytes);
}

}  // namespace

std::string DirectoryId::Key() const {
  Bytes bytes;
  Encoder encoder(bytes);
  encoder.PutString(handle);
  encoder.Put(birth.sec);
  encoder.Put(birth.nsec);
  const ContentHash hash = ContentHash::Of(bytes);
  std::array<char, 33> hex{};
  std::snprintf(hex.data(), hex.size(), "%016" PRIx64 "%016" PRIx64, hash.high,
                hash.low);
  return hex.data();
}

bool DirectoryId::IsSame(const DirectoryId& other) const {
  const bool uuids_known = !fs_uuid.empty() && !other.fs_uuid.empty();
  return handle == other.handle && birth == other.birth &&
         fs_type == other.fs_type && (!uuids_known || fs_uuid == other.fs_uuid);
}

Result<DirectoryId> IdentifyDirectory(int fd, bool settle) {
  struct statfs fs{};
  if (::fstatfs(fd, &fs) != 0) return Fail(errno, "statfs");
  DirectoryId id;
  id.fs_type = static_cast<uint64_t>(fs.f_type);
  struct statx stx{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &stx) !=
      0) {
    return Fail(errno, "statx");
  }
  if (!S_ISDIR(stx.stx_mode)) return Fail(ENOTDIR, "identify a directory");
  if (settle && id.fs_type == OVERLAYFS_SUPER_MAGIC) {
    if (::fchmod(fd, stx.stx_mode & 07777) != 0) return Fail(errno, "chmod");
    return IdentifyDirectory(fd);
  }
  id.handle = HandleOf(fd);
  if (id.handle.empty()) {
    id.handle.assign(reinterpret_cast<const char*>(&stx.stx_ino),
                     sizeof stx.stx_ino);
  }
  if ((stx.stx_mask & STATX_BTIME) != 0) {
    id.birth = {stx.stx_btime.tv_sec, stx.stx_btime.tv_nsec};
  }
  id.fs_uuid = UuidOf(fd);
  return id;
}

}  // namespace txfs
