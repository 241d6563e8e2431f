#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// What is to be limited or measured by control groups.
struct GroupNeeds {
  bool memory = false, pids = false, cpu = false;
};

/// The control groups that can be made for a run; "" for each that cannot.
struct GroupPlan {
  std::string unified;                ///< of version 2, for all that is needed
  std::string memory, pids, cpuacct;  ///< of version 1; may be the same

  /// Those that are not "".
  [[nodiscard]] std::vector<std::string> Paths() const;
};

/// Finds where this process may make control groups with the name `name`, and
/// may move its children to.
GroupPlan PlanGroups(const std::string& name, const GroupNeeds& needs);

/// Whether the user's systemd gives this process a scope, a group in which it
/// may make others. Asks it, which takes some 50 ms.
[[nodiscard]] bool MayEnterScope();
/// For a process of a user who can make no groups for `needs` where it is, as
/// in a login over ssh: starts this program again, with the same arguments, in
/// a scope of the user's systemd. Returns if that is not needed or not
/// possible.
void EnterScope(const GroupNeeds& needs);

/// A control group for limits with one in it for the processes
/// (kRunGroupInner); removed with all processes in it at the end.
class ControlGroup {
 public:
  static std::optional<ControlGroup> Make(const std::string& path);
  ~ControlGroup();
  ControlGroup(ControlGroup&&) = default;
  ControlGroup& operator=(ControlGroup&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Moves the calling process into it. Safe after a fork.
  [[nodiscard]] bool Enter() const;
  /// Of version 2: whether processes may be in it.
  [[nodiscard]] bool TakesProcesses() const;
  [[nodiscard]] bool Write(std::string_view file, std::string_view text) const;
  /// The number in `file`, or, of a file with a number for each of several
  /// keys, that of `key`. 0: not there.
  [[nodiscard]] uint64_t Read(std::string_view file,
                              std::string_view key = {}) const;
  /// As Read, and that of the group in it: some events count where the process
  /// is, others where the limit is.
  [[nodiscard]] uint64_t ReadEvents(std::string_view file,
                                    std::string_view key) const;

 private:
  ControlGroup(std::string path, UniqueFd processes)
      : path_(std::move(path)), processes_(std::move(processes)) {}

  std::string path_;
  UniqueFd processes_;  ///< cgroup.procs of the group in it
};

}  // namespace txfs::cli
