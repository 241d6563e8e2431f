#include "fs/fuse/fuse_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <future>
#include <thread>
#include <tuple>
#include <utility>

#include "fs/fuse/fuse_fusermount.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr const char* kDevice = "/dev/fuse";
constexpr std::string_view kModuleHint =
    "load the fuse kernel module: modprobe fuse";
constexpr std::string_view kContainerHint =
    "in a container, start it with --device /dev/fuse --cap-add SYS_ADMIN";

constexpr std::string_view kDeviceHint =
    "make sure that /dev/fuse is the device: character, 10:229";

/// MS_NOSYMFOLLOW, which glibc 2.36 does not have.
constexpr unsigned long kNoSymfollow = 256;

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
    {"lazytime", MS_LAZYTIME, true},
    {"nolazytime", MS_LAZYTIME, false},
    {"nosymfollow", kNoSymfollow, true},
};

const MountFlag* FindFlag(std::string_view name) {
  const auto* flag = std::ranges::find(kMountFlags, name, &MountFlag::name);
  return flag == std::end(kMountFlags) ? nullptr : flag;
}

std::unexpected<Error> ExplainMountpoint(int code, const std::string& path) {
  const std::string what = "mountpoint " + path;
  if (code == ENOENT) {
    return Fail(ErrorKind::kUsage, code, what, "create it: mkdir -p " + path);
  }
  if (code == ENOTDIR) {
    return Fail(ErrorKind::kUsage, code, what, "mount on a directory");
  }
  return Fail(code, what, code == ELOOP ? kSwappedHint : "");
}

/// The directory to mount at.
Result<UniqueFd> OpenMountpoint(const MountOptions& options) {
  const std::string& path = options.mountpoint;
  auto fd = OpenName(path, O_DIRECTORY);
  if (!fd) return ExplainMountpoint(fd.error().code, path);
  const auto over = FindTxfsMount(path);
  if (over && over->mountpoint == path && IsMountDead(path)) {
    return Fail(ErrorKind::kFailed, 0,
                "the mount at " + path + " is dead: its daemon is gone",
                "remove it: txfs umount " + path);
  }
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return ExplainMountpoint(errno, path);
  if (options.checked && *options.checked != ObjectId{st.st_dev, st.st_ino}) {
    return Fail(0,
                "the mountpoint " + path + " was replaced by another directory",
                kSwappedHint);
  }
  return std::move(*fd);
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

unsigned long WithOptions(unsigned long bits,
                          const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    const MountFlag* flag = FindFlag(option);
    if (flag == nullptr) continue;
    bits = flag->set ? bits | flag->bits : bits & ~flag->bits;
  }
  return bits;
}

unsigned long FlagBits(const MountOptions& options) {
  const unsigned long bits =
      WithOptions(MS_NOSUID | MS_NODEV, options.kernel_options);
  return options.read_only ? bits | MS_RDONLY : bits;
}

std::unexpected<Error> ExplainMountError(int code, const std::string& path) {
  const std::string message = "cannot mount at " + path;
  if (code == ENODEV) return Fail(code, message, kModuleHint);
  if (code == EPERM) return Fail(code, message, kContainerHint);
  if (code == EINVAL) return Fail(code, message, kDeviceHint);
  return Fail(code, message);
}

Result<UniqueFd> MountDirectly(const MountOptions& options, int mountpoint) {
  UniqueFd fd = TRY(OpenDevice());
  std::string data = "fd=" + std::to_string(fd.get()) +
                     ",rootmode=40000,user_id=" + std::to_string(::geteuid()) +
                     ",group_id=" + std::to_string(::getegid()) +
                     ",default_permissions";
  if (options.allow_other) data += ",allow_other";
  // The kernel goes to the very directory that is open.
  const std::string target = "/proc/self/fd/" + std::to_string(mountpoint);
  if (::mount(options.source.c_str(), target.c_str(), "fuse.txfs",
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

/// Whether to pass `option` to fusermount3: it does not know all flags of the
/// kernel, and always sets nosuid and nodev. An option that clears a flag says
/// what is so anyhow.
bool IsForFusermount(std::string_view option) {
  const MountFlag* flag = FindFlag(option);
  constexpr unsigned long kUnknown =
      MS_NODIRATIME | MS_RELATIME | MS_LAZYTIME | kNoSymfollow;
  return flag != nullptr && flag->set && (flag->bits & kUnknown) == 0;
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
    if (IsForFusermount(option)) text += "," + option;
  }
  if (options.read_only) text += ",ro";
  return text;
}

namespace {

/// Waits for renames of `directory` that were under way when it became a
/// mountpoint. vfs_rename() asks whether a directory is a mountpoint before it
/// moves it, and mount(2) holds no lock against it in between; those that
/// begin afterwards fail with EBUSY. A rename holds the lock of the parent,
/// which reading the parent takes too (fs/namei.c, fs/readdir.c).
void AwaitRenames(int directory) {
  const auto parent = OpenAt(directory, "..", O_RDONLY | O_DIRECTORY);
  if (!parent) return;
  alignas(dirent64) char entries[1024];
  std::ignore = ::getdents64(parent->get(), entries, sizeof entries);
}

/// The mount that was made at `directory`, if it lies at `options.mountpoint`.
std::optional<MountEntry> FindMade(const MountOptions& options, int directory) {
  const int around = MountIdOfDescriptor(directory);
  const auto table = ReadMountTable();
  // Covered as it is now, its path is still its own.
  if (!table || PathOfFd(directory) != options.mountpoint) return std::nullopt;
  for (const MountEntry& entry : *table) {
    if (entry.is_own() && entry.parent_id == around &&
        entry.mountpoint == options.mountpoint) {
      return entry;
    }
  }
  return std::nullopt;
}

/// Removes the mount of `options`, whose connection was closed, wherever it is.
void RemoveMisplaced(const MountOptions& options) {
  const auto table = ReadMountTable();
  if (!table) return;
  for (const MountEntry& entry : *table) {
    if (entry.is_own() && entry.source == options.source &&
        IsMountDead(entry.mountpoint)) {
      std::ignore = UnmountPath(entry.mountpoint, true, entry.device());
    }
  }
}

/// The options that set a flag, of a line of the mount table. Those of the
/// filesystem follow those of the mount: where one is read-only, files are.
std::vector<std::string> SplitOptions(const std::string& text) {
  std::vector<std::string> options;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find_first_of(", ", at), text.size());
    const MountFlag* flag = FindFlag(text.substr(at, end - at));
    if (flag != nullptr && flag->set) options.emplace_back(flag->name);
    at = end + 1;
  }
  return options;
}

/// Splits off the last component.
std::pair<std::string, std::string> SplitPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

/// Of a FUSE filesystem that may not answer: what the kernel knows itself.
Result<dev_t> DeviceAt(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct statx st{};
  if (!fd.valid() ||
      ::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) != 0) {
    return Fail(errno, "stat " + path);
  }
  return makedev(st.stx_dev_major, st.stx_dev_minor);
}

Status CheckMounted(const std::string& name, const std::string& mountpoint,
                    dev_t device) {
  const std::string what = "cannot unmount " + mountpoint;
  const auto there = DeviceAt(name);
  if (!there) return Fail(there.error().code, what);
  if (*there != device) {
    return Fail(EINVAL, what + ": it is no longer the same mount");
  }
  return {};
}

Status Unmount(const std::string& mountpoint, bool lazy, dev_t device) {
  const auto [parent, name] = SplitPath(mountpoint);
  const auto directory = OpenName(parent, O_DIRECTORY);
  if (!directory) {
    return Fail(directory.error().code, "cannot unmount " + mountpoint);
  }
  // Not the mount's own descriptor, which would keep it busy.
  const std::string target =
      "/proc/self/fd/" + std::to_string(directory->get()) + "/" + name;
  if (device != 0) TRY(CheckMounted(target, mountpoint, device));
  if (::geteuid() != 0) return FusermountUnmount(mountpoint, lazy);
  const int flags = UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);
  if (::umount2(target.c_str(), flags) == 0) return {};
  const int code = errno;
  return Fail(code == EBUSY ? ErrorKind::kBusy : ErrorKind::kFailed, code,
              "cannot unmount " + mountpoint);
}

bool IsMountedAt(const std::string& mountpoint, dev_t device) {
  const auto table = ReadMountTable();
  return !table || std::ranges::any_of(*table, [&](const MountEntry& entry) {
    return entry.mountpoint == mountpoint && entry.device() == device;
  });
}

}  // namespace

Result<FuseMount> MountFuse(const MountOptions& options) {
  TRY(CheckOptions(options));
  const UniqueFd directory = TRY(OpenMountpoint(options));
  UniqueFd device = ::geteuid() == 0
                        ? TRY(MountDirectly(options, directory.get()))
                        : TRY(MountAsUser(options));
  AwaitRenames(directory.get());
  auto entry = FindMade(options, directory.get());
  if (entry) {
    return FuseMount{.device = std::move(device), .entry = std::move(*entry)};
  }
  device.Reset();
  RemoveMisplaced(options);
  return Fail(
      0,
      "the mountpoint " + options.mountpoint + " was replaced during the mount",
      kSwappedHint);
}

Status RemountFuse(const MountEntry& entry,
                   const std::vector<std::string>& options) {
  const std::string what = "cannot remount " + entry.mountpoint;
  if (::geteuid() != 0) {
    return Fail(EPERM, what, "run as root, or unmount it and mount it again");
  }
  const UniqueFd root = TRY(OpenName(entry.mountpoint, O_DIRECTORY));
  const auto table = TRY(ReadMountTable());
  const MountEntry* there = MountOf(root.get(), table);
  if (there == nullptr || there->device() != entry.device()) {
    return Fail(0, what + ": another filesystem is mounted over it",
                "`findmnt` lists the mounts");
  }
  unsigned long bits = WithOptions(0, SplitOptions(entry.options));
  bits = WithOptions(bits, options);
  // Without a flag about access times the kernel keeps those that it has.
  if ((bits & MS_NOATIME) == 0) bits |= MS_RELATIME;
  const std::string target = "/proc/self/fd/" + std::to_string(root.get());
  if (::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | bits, nullptr) !=
      0) {
    return Fail(errno, what);
  }
  return {};
}

Status UnmountPath(const std::string& mountpoint, bool lazy, dev_t device) {
  const Status done = Unmount(mountpoint, lazy, device);
  // Who served it, or found it dead, may have unmounted it meanwhile.
  if (!done && device != 0 && !IsMountedAt(mountpoint, device)) return {};
  return done;
}

bool IsMountDead(const std::string& mountpoint) {
  // In a thread, which may have to be left behind: it ends with the process.
  std::packaged_task<bool()> ask([mountpoint] {
    // FORCE_SYNC: the attributes of the root may outlive the daemon in the
    // cache.
    struct statx info{};
    return ::statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_FORCE_SYNC,
                   STATX_TYPE, &info) != 0 &&
           (errno == ENOTCONN || errno == ECONNABORTED);
  });
  std::future<bool> answer = ask.get_future();
  std::thread(std::move(ask)).detach();
  return answer.wait_for(std::chrono::milliseconds(kDeadMs)) ==
             std::future_status::ready &&
         answer.get();
}

}  // namespace txfs
