#include "fs/posix/checks.h"

#include <sys/stat.h>

#include <climits>

#include "fs/host/xattrs.h"
#include "fs/posix/acl.h"

namespace txfs {

Status CheckName(std::string_view name) {
  if (name.size() > kMaxName) return Fail(ENAMETOOLONG, "name");
  if (name.empty() || name == "." || name == "..") return Fail(EINVAL, "name");
  if (name.find('/') != std::string_view::npos) return Fail(EINVAL, "name");
  return {};
}

Status CheckCrossing(const Attr& source) {
  if (source.type != FileType::kDirectory && source.nlink == 1) return {};
  return Fail(EXDEV, "rename");
}

Status CheckReplace(FileType source, const RenameEnd& victim) {
  const bool source_is_directory = source == FileType::kDirectory;
  const bool victim_is_directory = victim.type == FileType::kDirectory;
  if (source_is_directory && !victim_is_directory) {
    return Fail(ENOTDIR, "rename");
  }
  if (!source_is_directory && victim_is_directory) {
    return Fail(EISDIR, "rename");
  }
  if (victim_is_directory && !victim.is_empty) return Fail(ENOTEMPTY, "rename");
  return {};
}

Status CheckRange(uint64_t offset, uint64_t length) {
  if (offset > kMaxFileSize || length > kMaxFileSize - offset) {
    return Fail(EFBIG, "file range");
  }
  return {};
}

Status CheckXattr(std::string_view name, std::string_view value) {
  constexpr std::string_view kUser = "user.";
  constexpr size_t kMaxValue = 64 << 10;
  if (!IsTrackedXattr(name)) return Fail(EOPNOTSUPP, "setxattr");
  if (name == kUser) return Fail(EINVAL, "setxattr");
  if (name.size() > kMaxName) return Fail(ERANGE, "setxattr");
  if (value.size() > kMaxValue) return Fail(E2BIG, "setxattr");
  if (IsAclName(name) && !ModeOfAcl(value)) return Fail(EINVAL, "setxattr");
  return {};
}

uint32_t WithoutPrivileges(uint32_t mode, bool is_in_group) {
  uint32_t kept = mode & ~static_cast<uint32_t>(S_ISUID);
  if ((mode & S_IXGRP) != 0 || !is_in_group) {
    kept &= ~static_cast<uint32_t>(S_ISGID);
  }
  return kept;
}

}  // namespace txfs
