#include "tests/conformance/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "journal/support/unique_fd.h"

namespace txfs::testing {
namespace {

std::string ReadAll(int fd) {
  std::string content;
  char buffer[4096];
  ssize_t length = 0;
  while ((length = pread(fd, buffer, sizeof buffer,
                         static_cast<off_t>(content.size()))) > 0) {
    content.append(buffer, static_cast<size_t>(length));
  }
  return content;
}

int ExitCodeOf(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// The spawn file actions that connect the standard descriptors.
class StandardStreams {
 public:
  StandardStreams(int out, int err) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, out, 1);
    posix_spawn_file_actions_adddup2(&actions_, err, 2);
  }
  ~StandardStreams() { posix_spawn_file_actions_destroy(&actions_); }
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;
  [[nodiscard]] const posix_spawn_file_actions_t* get() const {
    return &actions_;
  }

 private:
  posix_spawn_file_actions_t actions_;
};

}  // namespace

CommandResult RunCommand(const std::vector<std::string>& command) {
  const UniqueFd out(memfd_create("out", MFD_CLOEXEC)),
      err(memfd_create("err", MFD_CLOEXEC));
  const StandardStreams streams(out.get(), err.get());
  std::vector<char*> arguments;
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], streams.get(), nullptr,
                                 arguments.data(), environ);
  if (error != 0) {
    return {.exit_code = 127,
            .output = {},
            .errors = "cannot start " + command[0] + ": " + strerror(error)};
  }
  const int exit_code = ExitCodeOf(pid);
  return {.exit_code = exit_code,
          .output = ReadAll(out.get()),
          .errors = ReadAll(err.get())};
}

void KillAndWait(pid_t pid, int signal) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process.valid()) return;
  kill(pid, signal);
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

std::string TxfsBinary() {
  const char* path = std::getenv("TXFS_BINARY");
  if (path) return path;
#ifdef TXFS_BINARY
  return TXFS_BINARY;
#else
  return "";
#endif
}

}  // namespace txfs::testing
