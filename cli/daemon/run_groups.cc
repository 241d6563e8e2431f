#include "cli/daemon/run_groups.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <thread>

#include "cli/daemon/kernel_file.h"
#include "cli/daemon/log.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

/// A process leaves its group a little after its parent knows that it ended.
constexpr std::chrono::milliseconds kGroupPause{2};
constexpr int kGroupPauses = 1000;

bool IsRunGroup(const std::string& path) {
  struct statfs fs{};
  const std::string_view name =
      std::string_view(path).substr(path.rfind('/') + 1);
  return path.starts_with('/') && name.starts_with(kRunGroupPrefix) &&
         ::statfs(path.c_str(), &fs) == 0 &&
         (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

void EndProcessesOf(const std::string& group) {
  std::istringstream lines(ReadKernelFile(group + "/cgroup.procs"));
  // 0 is one that has no id here.
  for (pid_t pid = 0; lines >> pid;) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

/// Removes a group with those in it, which a command with --nested may have
/// made. Ends the processes of one that cannot be removed, and returns why.
int RemoveOrEnd(const std::string& group) {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(group, ignored)) {
    if (entry.is_directory(ignored)) RemoveOrEnd(entry.path().native());
  }
  if (::rmdir(group.c_str()) == 0 || errno == ENOENT) return 0;
  const int error = errno;
  EndProcessesOf(group);
  return error;
}

}  // namespace

void RemoveRunGroup(const std::string& path) {
  if (!IsRunGroup(path)) return;
  for (int pauses = 0;; ++pauses) {
    const int error = RemoveOrEnd(path);
    if (error == 0) return;
    if (error != EBUSY || pauses == kGroupPauses) {
      LogError("cannot remove " + EscapeControls(path) + ": " +
               std::strerror(error));
      return;
    }
    std::this_thread::sleep_for(kGroupPause);
  }
}

}  // namespace txfs::cli
