#include "cli/protocol/runtime_dir.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string_view>

#include "fs/host/mount_table.h"
#include "journal/support/checksum.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr std::string_view kSocketSuffix = ".sock";

/// What `variable` says, else `below` the home directory.
std::string OwnDirectory(const char* variable, const char* below) {
  const char* path = std::getenv(variable);
  return path != nullptr && path[0] == '/' ? path : HomeDirectory() + below;
}

/// In a user namespace all users that it does not know, the machine's root
/// among them, show as this one.
bool IsUnmappedRoot(uid_t uid) {
  constexpr uid_t kOverflow = 65534;
  if (uid != kOverflow) return false;
  std::ifstream map("/proc/self/uid_map");
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  map >> inside >> outside >> count;
  return map && (inside != outside || count < UINT32_MAX);
}

Result<UniqueFd> OpenDirectory(const std::string& path, struct stat& st) {
  UniqueFd fd = TRY(OpenAt(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  // In /tmp anybody may mount what never answers.
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  const MountEntry* entry = MountOf(fd.get(), table);
  if (entry != nullptr && entry->is_strangers()) {
    return Fail(0, path + " is a mount of another user");
  }
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, path);
  return fd;
}

/// "" where it is no socket.
std::string StampAt(int dir, const std::string& name) {
  struct stat st{};
  return ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                 S_ISSOCK(st.st_mode)
             ? SocketStamp(st)
             : "";
}

/// A daemon listens at a socket before it gives it its name: what refuses has
/// nobody. One with a temporary name may be on the way there.
bool IsDeadSocket(int dir, const std::string& name) {
  constexpr time_t kOnTheWay = 60;
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
      (!name.ends_with(kSocketSuffix) &&
       st.st_mtim.tv_sec + kOnTheWay > ::time(nullptr))) {
    return false;
  }
  const std::string path = PathBelow(dir, name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const UniqueFd fd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return fd.valid() &&
         ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

std::string LastName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Status MakePrivateDirectory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(errno, path);
  }
  struct stat st{};
  const UniqueFd fd = TRY(OpenDirectory(path, st));
  if (st.st_uid != ::geteuid()) {
    return Fail(0, path + " belongs to user " + std::to_string(st.st_uid));
  }
  if ((st.st_mode & 077) != 0) {
    return Fail(0, path + " is open to other users");
  }
  return {};
}

std::string StateRuntimeDirectory() { return StateDirectory() + "/run"; }

}  // namespace

std::string HomeDirectory() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_dir : "/";
}

std::vector<std::string> RuntimeDirectories(uid_t uid) {
  std::vector<std::string> list;
  if (uid == 0) list.emplace_back("/run/txfs");
  const std::string user = std::to_string(uid);
  list.push_back("/run/user/" + user + "/txfs");
  list.push_back("/tmp/txfs-" + user);
  list.push_back(StateRuntimeDirectory());
  return list;
}

Result<std::vector<std::string>> MakeRuntimeDirectories() {
  std::vector<std::string> made;
  std::string reasons;
  const std::string last = StateRuntimeDirectory();
  const Status state = MakeDirectories(StateDirectory());
  for (const std::string& path : RuntimeDirectories(::geteuid())) {
    if (!made.empty() && path != last) continue;
    const Status status =
        path == last && !state ? state : MakePrivateDirectory(path);
    if (status) {
      made.push_back(path);
    } else {
      reasons += (reasons.empty() ? "" : ", ") + status.error().ToString();
    }
  }
  if (!made.empty()) return made;
  return Fail(0, "no directory for the control socket: " + reasons,
              "set XDG_STATE_HOME to a directory of your own");
}

std::string SocketName(const std::string& mountpoint) {
  return HashName(mountpoint) + std::string(kSocketSuffix);
}

std::vector<std::string> SocketPaths(uid_t uid, const std::string& mountpoint) {
  std::vector<std::string> paths = RuntimeDirectories(uid);
  for (std::string& path : paths) path += "/" + SocketName(mountpoint);
  return paths;
}

Result<UniqueFd> OpenOwnParent(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return Fail(EINVAL, path);
  const std::string parent = path.substr(0, std::max<size_t>(slash, 1));
  struct stat st{};
  UniqueFd fd = TRY(OpenDirectory(parent, st));
  if (st.st_uid != ::geteuid()) {
    return Fail(EPERM, "the directory of the control socket " + path +
                           " belongs to another user");
  }
  return fd;
}

std::string PathBelow(int dir, const std::string& path) {
  return "/proc/self/fd/" + std::to_string(dir) + "/" +
         path.substr(path.rfind('/') + 1);
}

// A file that is made later may have the inode number, but not the time, too;
// the change time is another one after a chmod.
std::string SocketStamp(const struct stat& st) {
  return std::to_string(st.st_ino) + "." + std::to_string(st.st_mtim.tv_sec) +
         "." + std::to_string(st.st_mtim.tv_nsec);
}

std::string StampOf(const std::string& path) {
  const auto dir = OpenOwnParent(path);
  return dir ? StampAt(dir->get(), LastName(path)) : "";
}

void RemoveSocket(const std::string& path, const std::string& stamp) {
  const auto dir = OpenOwnParent(path);
  if (!dir) return;
  const std::string name = LastName(path);
  if (!stamp.empty() && StampAt(dir->get(), name) == stamp) {
    ::unlinkat(dir->get(), name.c_str(), 0);
  }
}

void RemoveDeadSockets() {
  for (const std::string& path : RuntimeDirectories(::geteuid())) {
    struct stat st{};
    const auto dir = OpenDirectory(path, st);
    if (!dir || st.st_uid != ::geteuid()) continue;
    const auto names = ListNames(dir->get(), ".");
    if (!names) continue;
    for (const std::string& name : *names) {
      const std::string stamp = StampAt(dir->get(), name);
      if (!stamp.empty() && IsDeadSocket(dir->get(), name)) {
        RemoveSocket(path + "/" + name, stamp);
      }
    }
  }
}

std::string StateDirectory() {
  return OwnDirectory("XDG_STATE_HOME", "/.local/state") + "/txfs";
}

std::string ConfigDirectory() {
  return OwnDirectory("XDG_CONFIG_HOME", "/.config") + "/txfs";
}

bool IsOwnOrRoots(uid_t uid) {
  return uid == 0 || uid == ::geteuid() || IsUnmappedRoot(uid);
}

Status MakeDirectories(const std::string& path) {
  constexpr const char* kRemedy =
      "set HOME, or XDG_STATE_HOME, to a directory of your own";
  struct stat above{};
  if (::stat("/", &above) != 0) return Fail(errno, "/");
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    const std::string part = path.substr(0, at);
    struct stat st{};
    const bool exists = ::stat(part.c_str(), &st) == 0;
    // Under sudo(8), HOME may be that of another user, who could not use what
    // root makes there.
    if (!exists && errno == ENOENT && !IsOwnOrRoots(above.st_uid)) {
      return Fail(0,
                  "cannot create " + part +
                      ": the directory above belongs to user " +
                      std::to_string(above.st_uid),
                  kRemedy);
    }
    if (!exists && ::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return Fail(errno, "cannot create " + part, kRemedy);
    }
    if (::stat(part.c_str(), &above) != 0) {
      return Fail(errno, "cannot create " + part, kRemedy);
    }
    if (at != std::string::npos) ++at;
  }
  return {};
}

std::string HashName(const std::string& text) {
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016" PRIx64, Checksum(AsBytes(text)));
  return hex.data();
}

}  // namespace txfs::cli
