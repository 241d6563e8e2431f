#include "fs/base/base_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace txfs {

BaseLock LockOf(int dir, const std::string& name) {
  struct statx stx{};
  constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  if (::statx(dir, name.c_str(), kFlags, 0, &stx) != 0) {
    return BaseLock::kNone;
  }
  if ((stx.stx_attributes & STATX_ATTR_IMMUTABLE) != 0) {
    return BaseLock::kImmutable;
  }
  return (stx.stx_attributes & STATX_ATTR_APPEND) != 0 ? BaseLock::kAppendOnly
                                                       : BaseLock::kNone;
}

BaseLock LockOf(const BaseDirectory& base, const std::string& path) {
  const auto dir = base.OpenDirectory(std::string(ParentPath(path)));
  if (!dir) return BaseLock::kNone;
  const std::string name(path.empty() ? "." : BaseName(path));
  return LockOf((*dir)->get(), name);
}

}  // namespace txfs
