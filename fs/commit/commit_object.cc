#include "fs/commit/commit_object.h"

#include <fcntl.h>
#include <unistd.h>

#include "fs/host/xattrs.h"
#include "journal/support/file.h"

namespace txfs {

Result<OpenObject> OpenObjectAt(int dir, const std::string& name) {
  OpenObject object{.fd = TRY(OpenAt(dir, name, O_PATH | O_NOFOLLOW))};
  if (::fstat(object.fd.get(), &object.st) != 0) {
    return Fail(errno, "stat " + name);
  }
  return object;
}

int ChangeMode(const UniqueFd& object, mode_t mode) {
  return ::chmod(ProcPath(object.get()).c_str(), mode & 07777);
}

Result<UniqueFd> Reopen(const UniqueFd& object, int flags,
                        const std::string& path) {
  auto fd = OpenAt(AT_FDCWD, ProcPath(object.get()), flags | O_NONBLOCK);
  if (!fd) return Fail(fd.error().code, "open " + path);
  return fd;
}

int LinkObject(const UniqueFd& object, int dir, const std::string& name) {
  return ::linkat(AT_FDCWD, ProcPath(object.get()).c_str(), dir, name.c_str(),
                  AT_SYMLINK_FOLLOW);
}

}  // namespace txfs
