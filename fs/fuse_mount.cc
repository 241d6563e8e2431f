#include "fs/fuse_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "fs/fuse_fusermount.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr const char* kDevice = "/dev/fuse";
constexpr std::string_view kModuleHint =
    "load the fuse kernel module: modprobe fuse";
constexpr std::string_view kContainerHint =
    "in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN";

constexpr std::string_view kDeviceHint =
    "make sure that /dev/fuse is the device: character, 10:229";

struct MountFlag {
  std::string_view name;
  unsigned long bits;
  bool set;
};

constexpr MountFlag kMountFlags[] = {
    {"ro", MS_RDONLY, true},
    {"rw", MS_RDONLY, false},
    {"nosuid", MS_NOSUID, true},
    {"suid", MS_NOSUID, false},
    {"nodev", MS_NODEV, true},
    {"dev", MS_NODEV, false},
    {"noexec", MS_NOEXEC, true},
    {"exec", MS_NOEXEC, false},
    {"sync", MS_SYNCHRONOUS, true},
    {"async", MS_SYNCHRONOUS, false},
    {"dirsync", MS_DIRSYNC, true},
    {"noatime", MS_NOATIME, true},
    {"atime", MS_NOATIME, false},
    {"nodiratime", MS_NODIRATIME, true},
    {"diratime", MS_NODIRATIME, false},
    {"relatime", MS_RELATIME, true},
    {"norelatime", MS_RELATIME, false},
    {"strictatime", MS_STRICTATIME, true},
    {"lazytime", MS_LAZYTIME, true},
    {"nolazytime", MS_LAZYTIME, false},
};

const MountFlag* FindFlag(std::string_view name) {
  const auto* flag = std::ranges::find(kMountFlags, name, &MountFlag::name);
  return flag == std::end(kMountFlags) ? nullptr : flag;
}

Status CheckMountpoint(const std::string& path) {
  if (IsMountDead(path)) {
    return Fail(ErrorKind::kFailed, 0,
                "a mount whose daemon is gone is still at " + path,
                "remove it: txfs umount " + path);
  }
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return {};
    return Fail(ErrorKind::kUsage, ENOTDIR, "mountpoint " + path,
                "mount on a directory");
  }
  if (errno != ENOENT) return Fail(errno, "mountpoint " + path);
  return Fail(ErrorKind::kUsage, ENOENT, "mountpoint " + path,
              "create it: mkdir -p " + path);
}

Status CheckOptions(const MountOptions& options) {
  for (const std::string& option : options.kernel_options) {
    if (FindFlag(option) == nullptr) {
      return Fail(ErrorKind::kUsage, 0,
                  "unknown mount option \"" + option + '"',
                  "txfs(1) lists the mount options");
    }
  }
  return {};
}

Result<UniqueFd> OpenDevice() {
  auto fd = OpenAt(AT_FDCWD, kDevice, O_RDWR);
  if (fd) return fd;
  const int code = fd.error().code;
  const bool missing = code == ENOENT || code == ENODEV || code == ENXIO;
  return Fail(code, "cannot open /dev/fuse",
              missing ? kModuleHint : kContainerHint);
}

unsigned long FlagBits(const MountOptions& options) {
  unsigned long bits = MS_NOSUID | MS_NODEV;
  for (const std::string& option : options.kernel_options) {
    const MountFlag* flag = FindFlag(option);
    if (flag == nullptr) continue;
    bits = flag->set ? bits | flag->bits : bits & ~flag->bits;
  }
  return options.read_only ? bits | MS_RDONLY : bits;
}

std::unexpected<Error> ExplainMountError(int code, const std::string& path) {
  const std::string message = "cannot mount at " + path;
  if (code == ENODEV) return Fail(code, message, kModuleHint);
  if (code == EPERM) return Fail(code, message, kContainerHint);
  if (code == EINVAL) return Fail(code, message, kDeviceHint);
  return Fail(code, message);
}

Result<UniqueFd> MountDirectly(const MountOptions& options) {
  UniqueFd fd = TRY(OpenDevice());
  std::string data = "fd=" + std::to_string(fd.get()) +
                     ",rootmode=40000,user_id=" + std::to_string(::getuid()) +
                     ",group_id=" + std::to_string(::getgid()) +
                     ",default_permissions";
  if (options.allow_other) data += ",allow_other";
  if (::mount(options.source.c_str(), options.mountpoint.c_str(), "fuse.txfs",
              FlagBits(options), data.c_str()) != 0) {
    return ExplainMountError(errno, options.mountpoint);
  }
  return fd;
}

Result<UniqueFd> MountAsUser(const MountOptions& options) {
  if (::access(kDevice, F_OK) != 0) {
    return Fail(errno, "cannot open /dev/fuse", kModuleHint);
  }
  return FusermountMount(options.mountpoint, FusermountOptions(options));
}

/// Flags that fusermount3 does not know although the kernel takes them.
bool FusermountKnows(std::string_view option) {
  const unsigned long bits = FindFlag(option)->bits;
  return (bits &
          (MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME | MS_LAZYTIME)) == 0;
}

}  // namespace

std::string FusermountOptions(const MountOptions& options) {
  std::string text = "default_permissions,subtype=txfs,fsname=";
  for (const char c : options.source) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  if (options.allow_other) text += ",allow_other";
  // What FUSE has no use for (times are the daemon's) must not fail the mount.
  for (const std::string& option : options.kernel_options) {
    if (FindFlag(option) != nullptr && FusermountKnows(option)) {
      text += "," + option;
    }
  }
  if (options.read_only) text += ",ro";
  return text;
}

Result<UniqueFd> MountFuse(const MountOptions& options) {
  TRY(CheckOptions(options));
  TRY(CheckMountpoint(options.mountpoint));
  return ::geteuid() == 0 ? MountDirectly(options) : MountAsUser(options);
}

Status UnmountPath(const std::string& mountpoint, bool lazy) {
  if (::geteuid() != 0) return FusermountUnmount(mountpoint, lazy);
  const int flags = UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);
  if (::umount2(mountpoint.c_str(), flags) == 0) return {};
  const int code = errno;
  return Fail(code == EBUSY ? ErrorKind::kBusy : ErrorKind::kFailed, code,
              "cannot unmount " + mountpoint);
}

bool IsMountDead(const std::string& mountpoint) {
  // FORCE_SYNC: the attributes of the root may outlive the daemon in the cache.
  struct statx info{};
  return ::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_FORCE_SYNC, STATX_TYPE,
                 &info) != 0 &&
         (errno == ENOTCONN || errno == ECONNABORTED);
}

}  // namespace txfs
