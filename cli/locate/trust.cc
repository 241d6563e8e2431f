#include "cli/locate/trust.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <vector>

#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr mode_t kOthers = S_IRWXG | S_IRWXO;

std::unexpected<Error> BadStateDirectory(const std::string& path,
                                         const std::string& why) {
  return Fail(0,
              "the state directory " + StateDirectory() +
                  " cannot be used: " + path + " " + why,
              "set XDG_STATE_HOME to a directory of your own that others "
              "cannot write to");
}

/// Each directory above `path`, which has no links.
Status CheckAbove(const std::string& path) {
  for (size_t slash = path.rfind('/'); slash != std::string::npos;
       slash = slash == 0 ? std::string::npos : path.rfind('/', slash - 1)) {
    const std::string above = slash == 0 ? "/" : path.substr(0, slash);
    struct stat st{};
    if (::lstat(above.c_str(), &st) != 0) return Fail(errno, above);
    if (!IsOwnOrRoots(st.st_uid)) {
      return BadStateDirectory(above, "belongs to " + UserName(st.st_uid));
    }
    // Where it is sticky, others do not rename what is ours.
    if ((st.st_mode & S_ISVTX) == 0 && !IsOutOfOthersReach(st)) {
      return BadStateDirectory(above, "is writable by other users");
    }
  }
  return {};
}

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) == nullptr ? path : resolved;
}

/// Whom `directory` belongs to: the owner of the FUSE mount that it lies in,
/// which root need not be able to enter and which is not asked, else of the
/// workspace, which for this is the directory itself.
Result<uid_t> OwnerOf(const std::string& directory) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  std::optional<uid_t> owner;
  const auto walked = WalkTo(directory, [&](int fd) -> Status {
    const MountEntry* entry = MountOf(fd, table);
    if (entry == nullptr || !(entry->is_txfs() || entry->is_strangers())) {
      return {};
    }
    owner = entry->owner.value_or(0);
    return Fail(EPERM, "nothing in it is looked up");
  });
  if (owner) return *owner;
  if (!walked) return std::unexpected(walked.error());
  const UniqueFd fd = TRY(OpenAt(AT_FDCWD, directory, O_PATH | O_DIRECTORY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return Fail(errno, directory);
  return st.st_uid;
}

/// The group of a user that /etc/passwd does not have is not known; then it has
/// the number of the user, as on most machines.
Status BecomeUser(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  const gid_t gid = entry != nullptr ? entry->pw_gid : uid;
  const int grouped = entry != nullptr ? ::initgroups(entry->pw_name, gid)
                                       : ::setgroups(1, &gid);
  if (grouped != 0 || ::setresgid(gid, gid, gid) != 0 ||
      ::setresuid(uid, uid, uid) != 0) {
    return Fail(errno, "cannot become " + UserName(uid));
  }
  for (const char* variable :
       {"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "SUDO_USER", "MAIL"}) {
    ::unsetenv(variable);
  }
  ::setenv("HOME", entry != nullptr ? entry->pw_dir : "/", 1);
  ::setenv("USER", UserName(uid).c_str(), 1);
  ::setenv("LOGNAME", UserName(uid).c_str(), 1);
  return {};
}

}  // namespace

std::string UserName(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry != nullptr ? entry->pw_name : "user " + std::to_string(uid);
}

bool IsOutOfOthersReach(const struct stat& st) {
  if ((st.st_mode & S_IWOTH) != 0) return false;
  // With umask 002 each user has a group of the same name.
  return (st.st_mode & S_IWGRP) == 0 || st.st_gid == ::getegid() ||
         st.st_gid == 0;
}

Status CheckIsOwn(int fd, const std::string& what, const std::string& path) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, what + " " + path);
  if (st.st_uid == ::geteuid()) return {};
  const std::string owner = UserName(st.st_uid);
  return Fail(
      0,
      "the " + what + " " + path + " belongs to " + owner + ", not to " +
          UserName(::geteuid()),
      ::geteuid() == 0
          ? "`txfs --as-owner ...` gives up root's rights and acts as " + owner
          : "work as " + owner + ", or in a copy of your own");
}

Result<UniqueFd> OpenStateDirectory(bool make) {
  const std::string path = StateDirectory();
  if (make) TRY(MakeDirectories(path));
  auto opened = OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY);
  if (!opened) {
    return Fail(opened.error().code, "the state directory " + path,
                "set XDG_STATE_HOME to a directory of your own");
  }
  TRY(CheckAbove(RealPath(path)));
  struct stat st{};
  if (::fstat(opened->get(), &st) != 0) return Fail(errno, path);
  if (st.st_uid != ::geteuid()) {
    return BadStateDirectory(path, "belongs to " + UserName(st.st_uid));
  }
  if ((st.st_mode & kOthers) != 0 && ::fchmod(opened->get(), S_IRWXU) != 0) {
    return BadStateDirectory(path, "is open to other users");
  }
  return opened;
}

Status CheckStateDirectory() {
  const std::string state = StateDirectory();
  std::string there = state;
  struct stat st{};
  while (there.size() > 1 && ::stat(there.c_str(), &st) != 0 &&
         errno == ENOENT) {
    there.resize(std::max<size_t>(there.rfind('/'), 1));
  }
  if (there == state) {
    TRY(OpenStateDirectory(false));
    return {};
  }
  // What is missing is made below `there`, which so is one of those above.
  TRY(CheckAbove(JoinPath(RealPath(there), "missing")));
  if (::access(there.c_str(), W_OK | X_OK) != 0) {
    return Fail(errno, "cannot create " + state + " in " + there,
                "set HOME, or XDG_STATE_HOME, to a directory of your own");
  }
  return {};
}

Status ActAsOwner(const std::string& directory,
                  const std::vector<std::string>& arguments) {
  const uid_t owner = TRY(OwnerOf(directory));
  if (owner == ::geteuid()) return {};
  if (::geteuid() != 0) {
    return Fail(ErrorKind::kUsage, 0,
                "only root can act as the owner of " + directory + ", " +
                    UserName(owner),
                "work as that user, or omit --as-owner");
  }
  TRY(BecomeUser(owner));
  std::vector<char*> again;
  for (const std::string& argument : arguments) {
    again.push_back(const_cast<char*>(argument.c_str()));
  }
  again.push_back(nullptr);
  // Another process image: what root could open is gone, /proc is the user's.
  ::execv("/proc/self/exe", again.data());
  return Fail(errno, "run txfs as " + UserName(owner),
              "let that user execute the program");
}

}  // namespace txfs::cli
