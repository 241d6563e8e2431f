#include "fs/host/xattrs.h"

#include <linux/limits.h>
#include <sys/xattr.h>

#include <array>
#include <cerrno>

namespace txfs {

bool IsAclName(std::string_view name) {
  return name == kAccessAcl || name == kDefaultAcl;
}

bool IsTrackedXattr(std::string_view name) {
  return name.starts_with("user.") || IsAclName(name);
}

std::string ProcPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

Result<std::vector<std::string>> XattrNames(const std::string& path) {
  // Mostly there are none, and that is cheap to learn.
  ssize_t n = ::listxattr(path.c_str(), nullptr, 0);
  if (n == 0 || (n < 0 && errno == ENOTSUP)) return std::vector<std::string>();
  std::string names(XATTR_LIST_MAX, '\0');
  if (n > 0) n = ::listxattr(path.c_str(), names.data(), names.size());
  if (n < 0) return Fail(errno, "listxattr");
  std::vector<std::string> result;
  for (size_t at = 0; at < static_cast<size_t>(n);) {
    result.emplace_back(names.c_str() + at);
    at += result.back().size() + 1;
  }
  return result;
}

Result<std::vector<std::string>> TrackedXattrNames(int fd) {
  auto names = TRY(XattrNames(ProcPath(fd)));
  std::erase_if(names,
                [](const std::string& name) { return !IsTrackedXattr(name); });
  return names;
}

Result<std::string> XattrOf(const std::string& path, const std::string& name) {
  // Most objects lack the attribute, and most values are short.
  std::array<char, 256> most{};
  ssize_t n = ::getxattr(path.c_str(), name.c_str(), most.data(), most.size());
  if (n >= 0) return std::string(most.data(), static_cast<size_t>(n));
  if (errno != ERANGE) {
    return Fail(errno == ENOTSUP ? ENODATA : errno, "getxattr");
  }
  std::string value(XATTR_SIZE_MAX, '\0');
  n = ::getxattr(path.c_str(), name.c_str(), value.data(), value.size());
  if (n < 0) return Fail(errno, "getxattr");
  value.resize(static_cast<size_t>(n));
  return value;
}

bool SupportsAcls(int fd) {
  return ::getxattr(ProcPath(fd).c_str(), kAccessAcl, nullptr, 0) >= 0 ||
         errno != ENOTSUP;
}

}  // namespace txfs
