#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/control_group.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// What a sandbox may use, all its processes together; 0: no limit.
struct LimitValues {
  uint64_t memory = 0;  ///< bytes
  uint64_t cpu_ms = 0;
  uint64_t pids = 0;  ///< processes and threads at a time
  // Of the whole run, enforced by the daemons of its mounts.
  uint64_t disk = 0;   ///< bytes that it may write
  uint64_t files = 0;  ///< objects that it may make

  /// Whether there is one that a Limits enforces.
  [[nodiscard]] bool any() const { return memory + cpu_ms + pids != 0; }
};

enum class ExceededLimit : uint8_t { kMemory, kCpuTime, kPids, kDisk, kFiles };

/// "memory limit of 100.0 MiB exceeded".
std::string DescribeExceeded(ExceededLimit limit, const LimitValues& values);

/// What a sandbox has used.
struct ResourcesUsed {
  uint64_t memory = 0;  ///< bytes at the peak
  uint64_t cpu_ms = 0;
};

/// Holds the processes of one sandbox to limits: by control groups, and where
/// these cannot be made, by counting the processes (docs/run.md, "Limits").
class Limits {
 public:
  /// `announce` gets the control groups that may be made, before they are: who
  /// survives this process removes them (RemoveRunGroup).
  ///
  /// Errors: a limit that cannot be enforced.
  static Result<std::unique_ptr<Limits>> Make(
      const LimitValues& values,
      const std::function<Status(const std::vector<std::string>&)>& announce);
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  /// Has Exceeded look at a signal from MakeLimitSignal, which is borrowed; -1:
  /// none.
  void Watch(int signal) {
    if (signal >= 0) signals_.push_back(signal);
  }

  /// For the process that becomes the sandbox: puts it into the control groups;
  /// and when it is in its user namespace, into its resource limits.
  [[nodiscard]] bool Enter() const;
  /// `in_namespace`: false: it has none, where the number of processes cannot
  /// be restricted without those of the user that run elsewhere.
  [[nodiscard]] bool Restrict(bool in_namespace) const;

  /// How often Exceeded is to be asked, milliseconds; -1: not at all.
  [[nodiscard]] int interval_ms() const;
  /// The limit that the sandbox exceeded. `first`: its pid 1; 0: not there.
  std::optional<ExceededLimit> Exceeded(pid_t first);
  /// `usage`: of the processes of the sandbox, which have all ended.
  void End(const rusage& usage);

  [[nodiscard]] const LimitValues& values() const { return values_; }
  /// After End.
  [[nodiscard]] const ResourcesUsed& used() const { return used_; }
  /// "cgroup v2", "cgroup v1", "counted", "daemon", or several of them; ""
  /// without a limit.
  [[nodiscard]] std::string source() const;

 private:
  explicit Limits(const LimitValues& values) : values_(values) {}
  /// Whether all is limited by one group of version 2.
  bool UseUnified(const GroupPlan& plan);
  void UseClassic(const GroupPlan& plan);
  const ControlGroup* MakeGroup(const std::string& path);
  [[nodiscard]] bool Counts() const;
  void Count(pid_t first);
  [[nodiscard]] bool HasKilledForMemory() const;
  [[nodiscard]] uint64_t CpuTime() const;

  const LimitValues values_;
  std::vector<int> signals_;
  std::vector<std::unique_ptr<ControlGroup>> groups_;
  bool is_unified_ = false;
  /// That limits or measures it; null: no limit, or counted.
  const ControlGroup* memory_ = nullptr;
  const ControlGroup* cpu_ = nullptr;
  const ControlGroup* pids_ = nullptr;
  ResourcesUsed used_;
  // The most that was counted.
  uint64_t counted_memory_ = 0;
  uint64_t counted_threads_ = 0;
};

}  // namespace txfs::cli
