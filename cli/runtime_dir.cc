#include "cli/runtime_dir.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "journal/base/checksum.h"

namespace txfs::cli {
namespace {

std::string HomeDirectory() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return home;
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_dir : "/";
}

/// What `variable` says, else `below` the home directory.
std::string OwnDirectory(const char* variable, const char* below) {
  const char* path = std::getenv(variable);
  return path != nullptr && path[0] == '/' ? path : HomeDirectory() + below;
}

bool IsOwnDirectory(const std::string& path, uid_t uid) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) &&
         st.st_uid == uid;
}

}  // namespace

std::string RuntimeDirectory(uid_t uid) {
  if (uid == 0) return "/run/txfs";
  const std::string user = "/run/user/" + std::to_string(uid);
  if (IsOwnDirectory(user, uid)) return user + "/txfs";
  return "/tmp/txfs-" + std::to_string(uid);
}

Result<std::string> MakeRuntimeDirectory() {
  const std::string path = RuntimeDirectory(::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return Fail(errno, "cannot make the runtime directory " + path);
  }
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) return Fail(errno, path);
  if (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid() ||
      (st.st_mode & 077) != 0) {
    return Fail(0,
                "the runtime directory " + path +
                    " is not a private directory of this user",
                "remove it, or give it to yourself with mode 0700");
  }
  return path;
}

std::string SocketPath(uid_t uid, const std::string& mountpoint) {
  return RuntimeDirectory(uid) + "/" + HashName(mountpoint) + ".sock";
}

// A file that is made later may have the inode number, but not the time, too;
// the change time is another one after a chmod.
std::string SocketStamp(const struct stat& st) {
  return std::to_string(st.st_ino) + "." + std::to_string(st.st_mtim.tv_sec) +
         "." + std::to_string(st.st_mtim.tv_nsec);
}

void RemoveSocket(const std::string& path, const struct stat& known) {
  struct stat now{};
  if (::stat(path.c_str(), &now) == 0 && now.st_dev == known.st_dev &&
      now.st_ino == known.st_ino) {
    ::unlink(path.c_str());
  }
}

std::string StateDirectory() {
  return OwnDirectory("XDG_STATE_HOME", "/.local/state") + "/txfs";
}

std::string ConfigDirectory() {
  return OwnDirectory("XDG_CONFIG_HOME", "/.config") + "/txfs";
}

Status MakeDirectories(const std::string& path) {
  for (size_t at = 1; at != std::string::npos;) {
    at = path.find('/', at);
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return Fail(errno, "cannot make " + part,
                  "set HOME, or XDG_STATE_HOME, to a directory of your own");
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
