#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fs/workspace.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// How a child process ended that was to die at a crash point.
enum class Ending { kCrashed, kSurvived, kFailed };

/// Opens the workspace at `options` in a child process and does `act`, which
/// SIGKILL ends at crash point number `crash_at` (from 1; 0: at none). With
/// `while_opening`, points count from before the workspace is opened. Closes it
/// at the end.
Ending RunAndCrash(const WorkspaceOptions& options,
                   const std::function<Status(Workspace&)>& act,
                   uint64_t crash_at, bool while_opening);

/// The same, but SIGKILL comes `after_us` microseconds after the workspace was
/// opened, wherever the child is then.
Ending RunAndKill(const WorkspaceOptions& options,
                  const std::function<Status(Workspace&)>& act,
                  uint64_t after_us);

/// Where a workspace is when the operation under test begins.
enum class Stage {
  kOpen,       ///< the base is prepared, work was done
  kCommitted,  ///< that work was committed
  kUndone,     ///< and taken back
};

/// Something that a crash may interrupt.
struct Operation {
  std::string name;
  Stage stage = Stage::kOpen;
  std::function<Status(Workspace&)> act;
  bool while_opening = false;  ///< what is under test is what Open does
  bool changes_base = true;
  bool forgets_history = false;  ///< the commit can no longer be undone
  bool with_mount = false;       ///< another filesystem is in the base
};

/// A workspace in which one operation is interrupted, with images of what must
/// be found after it.
class CrashRig {
 public:
  CrashRig(const Operation& operation, uint64_t seed);

  /// Interrupts the operation.
  Ending CrashAt(uint64_t point);
  Ending KillAfter(uint64_t microseconds);
  /// Interrupts the recovery; true when it was.
  bool CrashRecoveryAt(uint64_t point);
  /// Recovers and demands that base and transaction are as before the
  /// operation or, from the point of no return on, as after it, and that
  /// nothing else is left. With `go_on`, that one can go on from there: repeat
  /// the operation, or take it back.
  void DemandRecovery(bool go_on);

 private:
  struct Trees {
    TreeView base, view;
    bool same_inodes = true;
  };

  Status Prepare(uint64_t seed);
  Status OpenDriver();
  Status CloseDriver();
  Status Reopen();
  Status BringTo(Stage stage);
  Result<TreeView> ViewOfBase();
  Result<TreeView> View();
  void Demand(const Trees& trees, const std::string& when);
  void GoOn(bool passed);
  void UndoWhatIsNotForgotten();
  /// Nothing in the store that no transaction and no history needs.
  void DemandNoLitter();

  /// Whether the point of no return was passed.
  [[nodiscard]] bool Passed() const;
  [[nodiscard]] std::vector<std::string> HistoryIds() const;
  [[nodiscard]] std::string InStore(const std::string& path) const {
    return base_.root() + "/.txfs/" + path;
  }

  const Operation operation_;
  TempDir scratch_{MemoryDirectory()};
  std::optional<TempMount> mount_;
  BaseTree base_;
  WorkspaceOptions options_;
  std::unique_ptr<CoreDriver> driver_;
  Trees before_, after_;
  TreeView original_;  // the base before any commit
  size_t ended_before_ = 0;
};

}  // namespace txfs::testing
