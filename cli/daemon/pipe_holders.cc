#include "cli/daemon/pipe_holders.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "journal/support/file.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

bool IsHeldBy(const std::string& process, uint64_t inode) {
  const auto descriptors = ListNames(AT_FDCWD, "/proc/" + process + "/fd");
  if (!descriptors) return false;
  return std::ranges::any_of(*descriptors, [&](const std::string& fd) {
    struct stat st{};
    const std::string path = "/proc/" + process + "/fd/" + fd;
    return ::stat(path.c_str(), &st) == 0 && S_ISFIFO(st.st_mode) &&
           st.st_ino == inode;
  });
}

/// Returns whether there was one that could be killed.
bool EndHolder(const std::string& process, uint64_t inode) {
  const auto pid =
      static_cast<pid_t>(std::strtol(process.c_str(), nullptr, 10));
  if (pid <= 0 || pid == ::getpid()) return false;
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.valid() || !IsHeldBy(process, inode) ||
      ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) != 0) {
    return false;
  }
  pollfd ended{fd.get(), POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

void EndHoldersOfPipe(uint64_t inode) {
  // One may start another, until a look at all finds none.
  for (bool any = true; any;) {
    any = false;
    const auto processes = ListNames(AT_FDCWD, "/proc");
    if (!processes) return;
    for (const std::string& process : *processes) {
      if (EndHolder(process, inode)) any = true;
    }
  }
}

}  // namespace txfs::cli
