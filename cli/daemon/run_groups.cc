#include "cli/daemon/run_groups.h"

#include <linux/magic.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>

#include "cli/daemon/kernel_file.h"
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

bool RemoveEmpty(const std::string& path) {
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

void EndProcessesOf(const std::string& group) {
  std::istringstream lines(ReadKernelFile(group + "/cgroup.procs"));
  // 0 is one that has no id here.
  for (pid_t pid = 0; lines >> pid;) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

}  // namespace

void RemoveRunGroup(const std::string& path) {
  if (!IsRunGroup(path)) return;
  const std::string inner = path + std::string(kRunGroupInner);
  for (int pauses = 0; !RemoveEmpty(inner) || !RemoveEmpty(path); ++pauses) {
    const int error = errno;
    if (error != EBUSY || pauses == kGroupPauses) {
      spdlog::error("cannot remove {}: {}", EscapeControls(path),
                    std::strerror(error));
      return;
    }
    EndProcessesOf(inner);
    std::this_thread::sleep_for(kGroupPause);
  }
}

}  // namespace txfs::cli
