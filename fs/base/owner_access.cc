#include "fs/base/owner_access.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <ranges>

#include "fs/host/xattrs.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// chmod(2) by a descriptor that need not be one for reading.
bool SetMode(const UniqueFd& directory, mode_t mode) {
  return ::chmod(ProcPath(directory.get()).c_str(), mode & 07777) == 0;
}

}  // namespace

bool DeniesOwner(const struct stat& directory) {
  constexpr mode_t kLooks = S_IRUSR | S_IXUSR;
  return ::geteuid() != 0 && directory.st_uid == ::geteuid() &&
         (directory.st_mode & kLooks) != kLooks;
}

bool MayWrite(int dir, const std::string& name) {
  struct stat st{};
  if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  return ::geteuid() == 0 || st.st_uid == ::geteuid() ||
         ::faccessat(dir, name.c_str(), W_OK, AT_EACCESS) == 0;
}

bool MayLink(int dir, const std::string& name) {
  struct stat st{};
  if (::geteuid() == 0 ||
      ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
      st.st_uid == ::geteuid()) {
    return true;
  }
  std::ifstream setting("/proc/sys/fs/protected_hardlinks");
  if (setting.get() == '0') return true;
  const bool privileged =
      (st.st_mode & S_ISUID) != 0 ||
      (st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);
  return S_ISREG(st.st_mode) && !privileged &&
         ::faccessat(dir, name.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
}

bool IsStuck(int dir, const std::string& name) {
  struct stat above{};
  struct stat st{};
  return ::geteuid() != 0 && ::fstat(dir, &above) == 0 &&
         (above.st_mode & S_ISVTX) != 0 && above.st_uid != ::geteuid() &&
         ::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         st.st_uid != ::geteuid();
}

OwnerAccess::OwnerAccess(const BaseDirectory& base, const std::string& path) {
  UniqueFd at(::fcntl(base.root(), F_DUPFD_CLOEXEC, 0));
  Widen(at);
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    auto next = OpenAt(at.get(), path.substr(begin, end - begin),
                       O_PATH | O_DIRECTORY | O_NOFOLLOW);
    if (!next) return;  // who looks there finds out
    at = std::move(*next);
    Widen(at);
    begin = end + 1;
  }
}

OwnerAccess::~OwnerAccess() {
  for (const Widened& widened : widened_ | std::views::reverse) {
    SetMode(widened.directory, widened.mode);
  }
}

void OwnerAccess::Widen(const UniqueFd& directory) {
  struct stat st{};
  if (::fstat(directory.get(), &st) != 0 || !DeniesOwner(st)) return;
  UniqueFd own(::fcntl(directory.get(), F_DUPFD_CLOEXEC, 0));
  if (!own.valid() || !SetMode(own, st.st_mode | S_IRWXU)) return;
  widened_.push_back({std::move(own), st.st_mode});
}

}  // namespace txfs
