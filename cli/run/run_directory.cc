#include "cli/run/run_directory.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "cli/protocol/runtime_dir.h"
#include "cli/run/run_transaction.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// The directory itself, not what is mounted there, whose daemon may hang.
UniqueFd OpenUnmounted(int parent, const std::string& name) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_openat2, parent, name.c_str(), &how, sizeof how)));
}

void RemoveAbandoned(const std::string& directory) {
  const auto parent = OpenAt(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY);
  if (!parent) return;
  const auto names = ListNames(parent->get(), ".");
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.starts_with(kRunPrefix)) continue;
    const UniqueFd fd = OpenUnmounted(parent->get(), name);
    if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) {
      ::unlinkat(parent->get(), name.c_str(), AT_REMOVEDIR);
    }
  }
}

}  // namespace

RunDirectory::~RunDirectory() {
  if (!path_.empty()) ::rmdir(path_.c_str());
}

Result<RunDirectory> RunDirectory::Make() {
  const std::string parent = TRY(MakeRuntimeDirectories()).front();
  RemoveAbandoned(parent);
  for (;;) {
    std::string path = parent + "/" + TRY(MakeRunName());
    if (::mkdir(path.c_str(), 0700) != 0) {
      return Fail(errno, "cannot make " + path);
    }
    UniqueFd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat st{};
    const bool is_locked = lock.valid() && ::flock(lock.get(), LOCK_SH) == 0 &&
                           ::fstat(lock.get(), &st) == 0;
    if (!is_locked && errno != ENOENT) {
      return Fail(errno, "cannot lock " + path);
    }
    // Another run may have removed it before it was locked.
    if (is_locked && st.st_nlink != 0) {
      return RunDirectory(std::move(path), std::move(lock));
    }
  }
}

}  // namespace txfs::cli
