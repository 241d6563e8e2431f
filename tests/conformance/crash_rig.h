#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "fs/workspace/workspace.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// How a child process ended that was to die at a crash point.
enum class Ending { kCrashed, kSurvived, kFailed };

/// Opens the workspace in a child process and does `act`, which SIGKILL ends
/// at crash point number `crash_at` (from 1; 0: at none). With `while_opening`,
/// points count from before the workspace is opened. Closes it at the end.
Ending RunAndCrash(const WorkspaceOptions& options,
                   const std::function<Status(Workspace&)>& act,
                   uint64_t crash_at, bool while_opening);

/// Paths of what a partial commit or discard is about; empty: all.
using Part = std::vector<std::string>;

/// A flag that a child process shares with its parent.
class SharedFlag {
 public:
  SharedFlag();
  ~SharedFlag();
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;

  void Set() { *flag_ = true; }
  [[nodiscard]] bool IsSet() const { return *flag_; }

 private:
  std::atomic<bool>* flag_;
};

/// Where a workspace is when the operation under test begins.
enum class Stage {
  kOpen,       ///< the base is prepared, work was done
  kCommitted,  ///< that work was committed
  kUndone,     ///< and taken back
  kSaved,      ///< there is a savepoint, and work was done since
};

/// Something that a crash may interrupt.
struct Operation {
  std::string name;
  Stage stage = Stage::kOpen;
  std::function<Status(Workspace&, const Part&)> act;
  bool changes_base = true;
  bool forgets_history = false;  ///< the commit can no longer be undone
  bool with_mount = false;       ///< another filesystem is in the base
  bool part = false;             ///< `act` gets a part, chosen by the seed
  bool disputed = false;         ///< others changed the base meanwhile
  /// It is this entry of the log of the transaction, which goes on.
  std::optional<Op> entry = {};
};

/// The act of an operation that is disputed: a commit that settles conflicts;
/// what both changed is merged by putting one after the other.
std::function<Status(Workspace&, const Part&)> SettleBy(OnConflict way);
/// Of such an act: whether a conflict stayed.
bool IsUnsettled(const Error& error);
/// Whether the last such act in this process settled something; if it was to
/// merge, by merging content.
bool HasSettled();

inline void PrintTo(const Operation& operation, std::ostream* out) {
  *out << operation.name;
}

/// The crash points that an operation meets while there is an intent.
struct PastPoints {
  uint64_t all = 0;
  uint64_t before_entry = 0;  ///< before its entry of the history is there
};

/// What base and transaction show, and whether they must show it under the
/// inode numbers of now.
struct Trees {
  TreeView base, view;
  bool same_base_inodes = true;
  bool same_view_inodes = true;
};

/// A workspace in which one operation is interrupted, with images of what must
/// be found after it.
class CrashRig {
 public:
  /// `after`: what a rig of the same operation and seed showed once it was
  /// done, for an operation on a part or a disputed one, of which nothing else
  /// says it.
  CrashRig(const Operation& operation, uint64_t seed,
           const Trees* after = nullptr);

  /// False: nothing can be demanded, for others took away what the transaction
  /// shows in part.
  [[nodiscard]] bool is_usable() const { return is_usable_; }

  /// Lets the operation happen and returns what is there then.
  Result<Trees> Act();

  /// Lets the operation happen and counts the points past that of no return.
  Result<PastPoints> CountPastPoints();

  /// Interrupts the operation.
  Ending CrashAt(uint64_t point);
  /// The same; `point`, from 1, is one of those that CountPastPoints counts.
  Ending CrashAtPast(uint64_t point);
  Ending KillAfter(uint64_t microseconds);
  /// Interrupts the recovery; true when it was.
  bool CrashRecoveryAt(uint64_t point);
  /// Takes the power away at a call, by a PowerCut of `seed`, or when the
  /// operation is done; it counts as one that survives then. kFailed: nothing
  /// was found out, for want of what the disk was to lose.
  Ending CutPowerAt(uint64_t call, uint64_t seed);
  /// The same of the recovery; true when there were as many calls.
  bool CutPowerOfRecoveryAt(uint64_t call, uint64_t seed);
  /// Syncs of such paths do nothing from now on (PowerCut).
  void IgnoreSyncsOf(std::string path_end) { ignored_ = std::move(path_end); }
  /// Recovers and demands that base and transaction are as before the
  /// operation or, from the point of no return on, as after it, that the store
  /// is sound and that nothing else is left. With `go_on`, that one can go on
  /// from there: repeat the operation, take it back, commit what is left.
  void DemandRecovery(bool go_on);

 protected:
  /// Stands still but when it is told: two rigs see the same times.
  class RigClock final : public Clock {
   public:
    [[nodiscard]] Timestamp Now() const override { return now_; }
    void Advance() { ++now_.sec; }

   private:
    Timestamp now_{.sec = 1'500'000'000, .nsec = 5};
  };

  Status Prepare(uint64_t seed, const Trees* after);
  Status Work(uint64_t seed);
  Status BringTo(Stage stage);
  Status ExpectAfter(const Trees* after);
  Status LetOthersWork(uint64_t seed);
  Status ChoosePart(uint64_t seed);
  Status OpenDriver();
  Status CloseDriver();
  Status Reopen();
  Result<TreeView> ViewOfBase();
  Result<TreeView> View();
  Status ActAndTell(Workspace& workspace);
  Ending CutPower(uint64_t call, uint64_t seed,
                  const std::function<Status(Workspace&)>& act, bool at_end);
  Result<bool> Passed();
  void Demand(const Trees& trees, const std::string& when);
  void GoOn(bool passed);
  void GoOnWithRest();
  void GoOnWithTransaction(bool passed);
  void UndoWhatIsNotForgotten();
  void DemandAllForgotten();
  /// Nothing is wrong in the store, or in it without need.
  void DemandSoundStore();

  /// Whether the point of no return was passed.
  [[nodiscard]] bool PassedInStore() const;
  [[nodiscard]] std::vector<std::string> HistoryIds() const;
  [[nodiscard]] std::string InStore(const std::string& path) const {
    return base_.root() + "/.txfs/" + path;
  }

  const Operation operation_;
  bool is_usable_ = true;
  TempDir scratch_{MemoryDirectory()};
  std::optional<TempMount> mount_;
  BaseTree base_;
  RigClock clock_;
  WorkspaceOptions options_;
  std::unique_ptr<CoreDriver> driver_;
  Part part_;
  Trees before_, after_;
  TreeView original_;  ///< the base before any commit
  TreeView saved_;     ///< the transaction at the savepoint
  size_t ended_before_ = 0;
  std::optional<std::string> ignored_;
  SharedFlag acknowledged_;  ///< the operation returned success
};

}  // namespace txfs::testing
