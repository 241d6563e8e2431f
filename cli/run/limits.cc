#include "cli/run/limits.h"

#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "cli/daemon/limit_signal.h"
#include "cli/daemon/run_groups.h"
#include "cli/output/text.h"
#include "cli/run/process_count.h"
#include "cli/run/run_transaction.h"

namespace txfs::cli {
namespace {

constexpr int kIntervalMs = 100;

/// Processes of bwrap in the groups: itself, and pid 1 of the sandbox.
constexpr uint64_t kOfBwrap = 2;

/// Lowers the resource limit of this process and its children.
template <class Resource>
bool Lower(Resource resource, uint64_t value) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(resource, &limit) == 0;
}

/// Whether RLIMIT_NPROC counts the processes of a user namespace alone; else it
/// counts all of the user's.
bool CountsByNamespace() {
  utsname name{};
  int major = 0, minor = 0;
  return ::uname(&name) == 0 &&
         std::sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
         (major > 5 || (major == 5 && minor >= 14));
}

}  // namespace

std::string DescribeExceeded(ExceededLimit limit, const LimitValues& values) {
  if (limit == ExceededLimit::kMemory) {
    return "memory limit of " + HumanSize(values.memory) + " exceeded";
  }
  if (limit == ExceededLimit::kPids) {
    return "limit of " + std::to_string(values.pids) +
           (values.pids == 1 ? " process" : " processes") + " exceeded";
  }
  if (limit == ExceededLimit::kDisk) {
    return "disk limit of " + HumanSize(values.disk) + " exceeded";
  }
  if (limit == ExceededLimit::kFiles) {
    return "limit of " + Count(values.files, "new file") + " exceeded";
  }
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f s",
                static_cast<double>(values.cpu_ms) / 1000);
  return std::string("CPU time limit of ") + seconds.data() + " exceeded";
}

Result<std::unique_ptr<Limits>> Limits::Make(
    const LimitValues& values,
    const std::function<Status(const std::vector<std::string>&)>& announce) {
  std::unique_ptr<Limits> limits(new Limits(values));
  if (limits->interval_ms() < 0) return limits;
  const std::string run = TRY(MakeRunName());
  const GroupPlan plan =
      PlanGroups(std::string(kRunGroupPrefix) + run.substr(run.find('-') + 1),
                 {.memory = values.memory != 0,
                  .pids = values.pids != 0,
                  .cpu = values.cpu_ms != 0});
  const std::vector<std::string> paths = plan.Paths();
  if (!paths.empty()) TRY(announce(paths));
  if (!limits->UseUnified(plan)) limits->UseClassic(plan);
  if (limits->Counts() && !CanCountProcesses()) {
    return Fail(0,
                "the limits cannot be enforced: no control group can be made "
                "here, and /proc does not show the children of a process",
                "run as root, or in a control group of version 2 that is "
                "delegated to you, or leave out --memory, --cpu-time and "
                "--pids");
  }
  return limits;
}

const ControlGroup* Limits::MakeGroup(const std::string& path) {
  for (const auto& group : groups_) {
    if (group->path() == path) return group.get();
  }
  auto made = ControlGroup::Make(path);
  if (!made) return nullptr;
  groups_.push_back(std::make_unique<ControlGroup>(std::move(*made)));
  return groups_.back().get();
}

bool Limits::UseUnified(const GroupPlan& plan) {
  const ControlGroup* group = MakeGroup(plan.unified);
  if (group == nullptr) return false;
  if (!group->TakesProcesses() ||
      (values_.memory != 0 &&
       !group->Write("memory.max", std::to_string(values_.memory))) ||
      (values_.pids != 0 &&
       !group->Write("pids.max", std::to_string(values_.pids + kOfBwrap)))) {
    groups_.clear();
    return false;
  }
  if (values_.memory != 0) {
    // A kernel without swap has no such file, and an old one cannot end the
    // group as a whole: Exceeded sees to it.
    std::ignore = group->Write("memory.swap.max", "0");
    std::ignore = group->Write("memory.oom.group", "1");
    memory_ = group;
  }
  if (values_.pids != 0) pids_ = group;
  if (values_.cpu_ms != 0) cpu_ = group;
  is_unified_ = true;
  return true;
}

void Limits::UseClassic(const GroupPlan& plan) {
  if (const ControlGroup* group = MakeGroup(plan.memory)) {
    const std::string value = std::to_string(values_.memory);
    if (group->Write("memory.limit_in_bytes", value)) memory_ = group;
    // Not there if the kernel does not count swap.
    std::ignore = group->Write("memory.memsw.limit_in_bytes", value);
  }
  if (const ControlGroup* group = MakeGroup(plan.pids)) {
    if (group->Write("pids.max", std::to_string(values_.pids + kOfBwrap))) {
      pids_ = group;
    }
  }
  cpu_ = MakeGroup(plan.cpuacct);
}

bool Limits::Enter() const {
  return std::ranges::all_of(groups_,
                             [](const auto& group) { return group->Enter(); });
}

bool Limits::Restrict(bool in_namespace) const {
  // Bounds for what happens between two counts: wide, so that a count sees the
  // limit exceeded, and the run ends for this reason.
  constexpr uint64_t kGiB = 1ULL << 30;
  bool done = true;
  if (values_.memory != 0 && memory_ == nullptr) {
    const uint64_t more = std::max(values_.memory, kGiB);
    done = Lower(RLIMIT_DATA, values_.memory + more);
  }
  if (values_.cpu_ms != 0 && cpu_ == nullptr) {
    done = Lower(RLIMIT_CPU, values_.cpu_ms / 1000 + 2) && done;
  }
  if (values_.pids != 0 && pids_ == nullptr && in_namespace &&
      CountsByNamespace()) {
    constexpr uint64_t kMore = 64;
    done = Lower(RLIMIT_NPROC, 2 * values_.pids + kMore) && done;
  }
  return done;
}

int Limits::interval_ms() const {
  return values_.any() || !signals_.empty() ? kIntervalMs : -1;
}

bool Limits::Counts() const {
  return (values_.memory != 0 && memory_ == nullptr) ||
         (values_.cpu_ms != 0 && cpu_ == nullptr) ||
         (values_.pids != 0 && pids_ == nullptr);
}

void Limits::Count(pid_t first) {
  const ProcessCount count = CountProcesses(first);
  uint64_t memory = count.memory;
  if (values_.memory != 0 && memory_ == nullptr && memory > values_.memory) {
    memory = MemoryOf(count.processes);
  }
  counted_memory_ = std::max(counted_memory_, memory);
  used_.cpu_ms = std::max(used_.cpu_ms, count.cpu_ms);
  counted_threads_ = std::max(counted_threads_, count.threads);
}

bool Limits::HasKilledForMemory() const {
  // A group above may be out of memory, too, and kill here.
  if (is_unified_) {
    return memory_->Read("memory.events", "oom_kill") != 0 &&
           memory_->Read("memory.events", "oom") != 0;
  }
  // Charges of several pages may fail a little below the limit. The counts of
  // failures (memory.failcnt) stay 0 on new kernels.
  constexpr uint64_t kNear = 1 << 20;
  return memory_->ReadEvents("memory.oom_control", "oom_kill") != 0 &&
         memory_->Read("memory.max_usage_in_bytes") + kNear >= values_.memory;
}

uint64_t Limits::CpuTime() const {
  if (cpu_ == nullptr) return used_.cpu_ms;
  return is_unified_ ? cpu_->Read("cpu.stat", "usage_usec") / 1000
                     : cpu_->Read("cpuacct.usage") / 1'000'000;
}

std::optional<ExceededLimit> Limits::Exceeded(pid_t first) {
  for (const int signal : signals_) {
    if (const auto limit = TakeLimitSignal(signal)) {
      return *limit == RunLimit::kBytes ? ExceededLimit::kDisk
                                        : ExceededLimit::kFiles;
    }
  }
  if (first != 0 && Counts()) Count(first);
  if (values_.memory != 0 &&
      (memory_ != nullptr ? HasKilledForMemory()
                          : counted_memory_ > values_.memory)) {
    return ExceededLimit::kMemory;
  }
  if (values_.pids != 0 &&
      (pids_ != nullptr ? pids_->ReadEvents("pids.events", "max") != 0
                        : counted_threads_ > values_.pids)) {
    return ExceededLimit::kPids;
  }
  if (values_.cpu_ms != 0 && CpuTime() > values_.cpu_ms) {
    return ExceededLimit::kCpuTime;
  }
  return std::nullopt;
}

void Limits::End(const rusage& usage) {
  const auto ms = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 +
           static_cast<uint64_t>(time.tv_usec) / 1000;
  };
  used_.cpu_ms = std::max(CpuTime(), ms(usage.ru_utime) + ms(usage.ru_stime));
  // Of the largest process alone, where nothing counts all.
  used_.memory =
      std::max(counted_memory_, static_cast<uint64_t>(usage.ru_maxrss) * 1024);
  if (memory_ != nullptr) {
    const uint64_t peak = memory_->Read(
        is_unified_ ? "memory.peak" : "memory.max_usage_in_bytes");
    if (peak != 0) used_.memory = peak;
  }
}

std::string Limits::source() const {
  std::string text;
  if (!groups_.empty()) text = is_unified_ ? "cgroup v2" : "cgroup v1";
  const auto add = [&](const char* means) {
    text += (text.empty() ? "" : ", ") + std::string(means);
  };
  if (Counts()) add("counted");
  if (!signals_.empty()) add("daemon");
  return text;
}

}  // namespace txfs::cli
