#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/commit_run.h"
#include "fs/xattrs.h"
#include "journal/base/crash_point.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

using Xattrs = std::map<std::string, std::string>;

/// Makes `wanted` all the user.* attributes of an open object.
Status SetXattrs(int fd, const Xattrs& wanted, const std::string& path) {
  const std::string proc = ProcPath(fd);
  // What cannot be listed cannot be set either, and that says why.
  const auto names = XattrNames(proc);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (!name.starts_with("user.") || wanted.contains(name)) continue;
    if (::removexattr(proc.c_str(), name.c_str()) != 0 && errno != ENODATA) {
      return Fail(errno, "removexattr " + path);
    }
  }
  for (const auto& [name, value] : wanted) {
    CrashPoint();
    if (::setxattr(proc.c_str(), name.c_str(), value.data(), value.size(), 0) !=
        0) {
      const bool is_full = errno == ENOSPC || errno == E2BIG;
      return Fail(errno, "set extended attributes of " + path,
                  is_full ? "remove those that are too large for the "
                            "workspace's filesystem (setfattr -x NAME FILE), "
                            "or make room"
                          : "");
    }
  }
  return {};
}

Status ApplyXattrs(int dir, const std::string& name,
                   const ObjectAttributes& attributes,
                   const std::string& path) {
  const UniqueFd fd = TRY(OpenAt(dir, name, O_PATH | O_NOFOLLOW));
  auto set = SetXattrs(fd.get(), *attributes.xattrs, path);
  if (set || set.error().code != EACCES) return set;
  std::ignore =
      ::fchmodat(dir, name.c_str(), attributes.mode | S_IRUSR | S_IWUSR, 0);
  return SetXattrs(fd.get(), *attributes.xattrs, path);
}

}  // namespace

Status ApplyAttributes(int dir, const std::string& name,
                       const ObjectAttributes& attributes,
                       const std::string& path) {
  const bool is_symlink = attributes.type == FileType::kSymlink;
  if (attributes.xattrs && !is_symlink) {
    TRY(ApplyXattrs(dir, name, attributes, path));
  }
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return Fail(errno, "stat " + path);
  }
  CrashPoint();
  const bool owner_differs =
      st.st_uid != attributes.uid || st.st_gid != attributes.gid;
  // An ordinary user's daemon cannot give files away; the file is its own.
  if (owner_differs &&
      ::fchownat(dir, name.c_str(), attributes.uid, attributes.gid,
                 AT_SYMLINK_NOFOLLOW) != 0 &&
      (errno != EPERM || ::geteuid() == 0)) {
    return Fail(errno, "chown " + path);
  }
  // Nor can it change what belongs to others; then nothing of this differs, but
  // for the times of what it could write.
  const bool foreign = ::geteuid() != 0 && st.st_uid != ::geteuid();
  CrashPoint();
  // chown took set-user-ID and set-group-ID away.
  if (!is_symlink &&
      (owner_differs || (st.st_mode & 07777) != attributes.mode) &&
      ::fchmodat(dir, name.c_str(), attributes.mode, 0) != 0 &&
      !(foreign && errno == EPERM)) {
    return Fail(errno, "chmod " + path);
  }
  CrashPoint();
  const timespec times[2] = {attributes.atime.ToTimespec(),
                             attributes.mtime.ToTimespec()};
  if (::utimensat(dir, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0 &&
      !(foreign && errno == EPERM)) {
    return Fail(errno, "utimens " + path);
  }
  return {};
}

}  // namespace txfs
