#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <ranges>

#include "fs/base/base_lock.h"
#include "fs/commit/commit_object.h"
#include "fs/commit/commit_run.h"
#include "fs/host/xattrs.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

using Xattrs = std::map<std::string, std::string>;

/// Makes `wanted` all the tracked attributes of an open object. `was`: what a
/// step found there, if it is one of the base.
Status SetXattrs(int fd, const Xattrs& wanted, const Xattrs* was,
                 const std::string& path) {
  const std::string proc = ProcPath(fd);
  // What cannot be listed cannot be set either, and that says why.
  const auto names = XattrNames(proc);
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    if (!IsTrackedXattr(name) || wanted.contains(name)) continue;
    // The plans of versions that did not track lists do not name them.
    if (IsAclName(name) && was != nullptr && !was->contains(name)) continue;
    if (::removexattr(proc.c_str(), name.c_str()) != 0 && errno != ENODATA) {
      return Fail(errno, "removexattr " + path);
    }
  }
  // An access control list, which may take the permission to set others away,
  // comes after them.
  for (const auto& [name, value] : std::views::reverse(wanted)) {
    // Only its owner may set a list, even to what it is.
    const auto present = XattrOf(proc, name);
    if (present && *present == value) continue;
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

/// An ordinary user's daemon cannot give files away; the file is its own. The
/// plan of the commit says so.
Status GiveOwner(int fd, const ObjectAttributes& attributes,
                 const std::string& path) {
  if (::fchownat(fd, "", attributes.uid, attributes.gid, AT_EMPTY_PATH) == 0) {
    return {};
  }
  if (errno != EPERM || ::geteuid() == 0) return Fail(errno, "chown " + path);
  constexpr auto kSame = static_cast<uid_t>(-1);
  if (::fchownat(fd, "", kSame, attributes.gid, AT_EMPTY_PATH) == 0 ||
      errno == EPERM) {
    return {};
  }
  return Fail(errno, "chgrp " + path);
}

Status ApplyXattrs(const OpenObject& object, const ObjectAttributes& attributes,
                   const Xattrs* was, const std::string& path) {
  const int fd = object.fd.get();
  auto set = SetXattrs(fd, *attributes.xattrs, was, path);
  if (set || set.error().code != EACCES) return set;
  std::ignore =
      ChangeMode(object.fd, (attributes.mode & 0777) | S_IRUSR | S_IWUSR);
  return SetXattrs(fd, *attributes.xattrs, was, path);
}

}  // namespace

Status ApplyAttributes(const OpenObject& object,
                       const ObjectAttributes& attributes,
                       const std::string& path,
                       const ObjectAttributes* before) {
  const bool is_symlink = attributes.type == FileType::kSymlink;
  if (TypeOfMode(object.st.st_mode) != attributes.type) {
    return Fail(EEXIST, path + " has another type now");
  }
  if (attributes.xattrs && !is_symlink) {
    const bool has_before = before != nullptr && before->xattrs;
    TRY(ApplyXattrs(object, attributes, has_before ? &*before->xattrs : nullptr,
                    path));
  }
  const int fd = object.fd.get();
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat " + path);
  CrashPoint();
  const bool owner_differs =
      st.st_uid != attributes.uid || st.st_gid != attributes.gid;
  if (owner_differs) TRY(GiveOwner(fd, attributes, path));
  // Nor can it change what belongs to others; then nothing of this differs, but
  // for the times of what it could write.
  const bool foreign = ::geteuid() != 0 && st.st_uid != ::geteuid();
  CrashPoint();
  // chown took set-user-ID and set-group-ID away.
  if (!is_symlink &&
      (owner_differs || (st.st_mode & 07777) != attributes.mode) &&
      ChangeMode(object.fd, attributes.mode) != 0 &&
      !(foreign && errno == EPERM)) {
    return Fail(errno, "chmod " + path);
  }
  CrashPoint();
  const timespec times[2] = {attributes.atime.ToTimespec(),
                             attributes.mtime.ToTimespec()};
  // The path leads to the open object, also where that is a symbolic link.
  const std::string proc = ProcPath(fd);
  if (::utimensat(AT_FDCWD, proc.c_str(), times, 0) == 0) return {};
  if (errno != EPERM || (!foreign && LockOf(fd, "") != BaseLock::kAppendOnly)) {
    return Fail(errno, "utimens " + path);
  }
  // An append-only object gets no other time than now, nor does what belongs to
  // others, from who may write it. So a touch stays one.
  if (Timestamp::From(st.st_mtim) != attributes.mtime) {
    std::ignore = ::utimensat(AT_FDCWD, proc.c_str(), nullptr, 0);
  }
  return {};
}

}  // namespace txfs
