#include "cli/run/process_count.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/daemon/kernel_file.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

std::string ProcText(const std::string& path) {
  return ReadKernelFile("/proc/" + path);
}

/// The sum of the lines "NAME:  N kB" with one of `names`, in bytes.
uint64_t SumOfLines(const std::string& text,
                    std::initializer_list<std::string_view> names) {
  uint64_t sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    for (const std::string_view name : names) {
      if (std::string_view(line).substr(0, colon) != name) continue;
      sum += std::strtoull(line.c_str() + colon + 1, nullptr, 10) * 1024;
    }
  }
  return sum;
}

/// What /proc/PID/stat says.
struct ProcessStat {
  uint64_t cpu_ms = 0;
  uint64_t threads = 0;
};

ProcessStat StatOf(const std::string& pid) {
  const std::string text = ProcText(pid + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  // Field 3 of proc(5) comes first.
  constexpr size_t kFirstField = 3, kUserTime = 14, kChildrenTime = 17,
                   kThreads = 20;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  ProcessStat stat;
  uint64_t ticks = 0;
  for (size_t i = kFirstField; i <= kThreads && fields >> field; ++i) {
    const uint64_t number = std::strtoull(field.c_str(), nullptr, 10);
    if (i >= kUserTime && i <= kChildrenTime) ticks += number;
    if (i == kThreads) stat.threads = number;
  }
  stat.cpu_ms = ticks * 1000 / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  return stat;
}

void AddChildren(const std::string& pid, uint64_t threads,
                 std::vector<pid_t>& processes) {
  std::vector<std::string> ids = {pid};
  if (threads > 1) {
    ids = ListNames(AT_FDCWD, "/proc/" + pid + "/task").value_or(ids);
  }
  for (const std::string& thread : ids) {
    std::istringstream children(
        ProcText(pid + "/task/" + thread + "/children"));
    for (pid_t child = 0; children >> child;) processes.push_back(child);
  }
}

}  // namespace

bool CanCountProcesses() {
  return ::access("/proc/thread-self/children", R_OK) == 0;
}

ProcessCount CountProcesses(pid_t first) {
  ProcessCount count;
  count.processes.push_back(first);
  for (size_t i = 0; i < count.processes.size(); ++i) {
    const std::string pid = std::to_string(count.processes[i]);
    const ProcessStat stat = StatOf(pid);
    count.cpu_ms += stat.cpu_ms;
    if (i != 0) count.threads += stat.threads;
    count.memory += SumOfLines(ProcText(pid + "/status"),
                               {"RssAnon", "RssShmem", "VmSwap"});
    AddChildren(pid, stat.threads, count.processes);
  }
  return count;
}

uint64_t MemoryOf(const std::vector<pid_t>& processes) {
  uint64_t sum = 0;
  for (const pid_t process : processes) {
    const std::string pid = std::to_string(process);
    const std::string text = ProcText(pid + "/smaps_rollup");
    sum += text.empty()
               ? SumOfLines(ProcText(pid + "/status"),
                            {"RssAnon", "RssShmem", "VmSwap"})
               : SumOfLines(text, {"Pss_Anon", "Pss_Shmem", "SwapPss"});
  }
  return sum;
}

}  // namespace txfs::cli
