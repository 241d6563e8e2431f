#include "tests/conformance/crash_rig.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <new>
#include <random>
#include <thread>

#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/others_work.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/power_cut.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/varied_work.h"

namespace txfs::testing {
namespace {

constexpr int kFailed = 1;
/// Nothing else here fails so.
constexpr int kUnsettled = ENOTSUP;
bool has_settled = false;
std::atomic<uint64_t> points_left;

void CountPoint() {
  if (points_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

void Arm(uint64_t crash_at) {
  points_left = crash_at;
  SetCrashHook(CountPoint);
}

/// What happens at each crash point of this process; may be in any thread.
std::function<void()> at_point;

void WatchPoints(std::function<void()> watch) {
  at_point = std::move(watch);
  SetCrashHook([] { at_point(); });
}

Status OpenAndAct(const WorkspaceOptions& options,
                  const std::function<Status(Workspace&)>& act,
                  const std::function<void()>& opened) {
  const auto workspace = TRY(Workspace::Open(options));
  opened();
  TRY(act(*workspace));
  return workspace->Close();
}

Ending WaitFor(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    return Ending::kCrashed;
  }
  const bool done = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return done ? Ending::kSurvived : Ending::kFailed;
}

/// Nothing of the parent's runs in the child but `work`.
template <class Work>
pid_t Fork(const Work& work) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child != 0) return child;
  const Status done = work();
  if (!done) std::cerr << "child: " << done.error().ToString() << std::endl;
  ::_exit(done ? 0 : kFailed);
}

/// The root has the store in it, a mount its part of the vaults, which may go
/// in the background while the process is killed: its time may not be set back.
Result<TreeView> ViewWithoutVaults(Driver& driver, bool with_mount) {
  TreeView view = TRY(ViewWithoutStore(driver));
  if (!with_mount) return view;
  view.at("w").nlink = 0;
  view.at("w").mtime = {};
  return view;
}

/// As RunAndCrash, but SIGKILL comes `after_us` microseconds after the
/// workspace was opened, wherever the child is then.
Ending RunAndKill(const WorkspaceOptions& options,
                  const std::function<Status(Workspace&)>& act,
                  uint64_t after_us) {
  std::thread killer;
  return WaitFor(Fork([&] {
    return OpenAndAct(options, act, [&] {
      killer = std::thread([after_us] {
        const auto end = std::chrono::steady_clock::now() +
                         std::chrono::microseconds(after_us);
        while (std::chrono::steady_clock::now() < end) {
        }
        ::kill(::getpid(), SIGKILL);
      });
    });
  }));
}

}  // namespace

Ending RunAndCrash(const WorkspaceOptions& options,
                   const std::function<Status(Workspace&)>& act,
                   uint64_t crash_at, bool while_opening) {
  return WaitFor(Fork([&] {
    if (while_opening) Arm(crash_at);
    return OpenAndAct(options, act, [&] {
      if (!while_opening) Arm(crash_at);
    });
  }));
}

std::function<Status(Workspace&, const Part&)> SettleBy(OnConflict way) {
  return [way](Workspace& workspace, const Part&) -> Status {
    bool merged = false;
    const auto join =
        [&](const MergeInput& input) -> Result<std::optional<MergedText>> {
      merged = true;
      return MergedText{.content = std::string(input.ours) +
                                   std::string(input.theirs)};
    };
    const CommitReport report = TRY(
        workspace.Commit({.conflicts = {.on_conflict = way, .merge = join}}));
    has_settled =
        !report.resolved.empty() && (merged || way != OnConflict::kMerge);
    if (report.conflicts.empty()) return {};
    return Fail(kUnsettled, "conflict: " + report.conflicts.front().path);
  };
}

bool IsUnsettled(const Error& error) { return error.code == kUnsettled; }

bool HasSettled() { return has_settled; }

SharedFlag::SharedFlag() {
  void* shared = ::mmap(nullptr, sizeof *flag_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  flag_ = shared == MAP_FAILED ? nullptr : new (shared) std::atomic<bool>;
}

SharedFlag::~SharedFlag() { ::munmap(flag_, sizeof *flag_); }

CrashRig::CrashRig(const Operation& operation, uint64_t seed,
                   const Trees* after)
    : operation_(operation), base_(scratch_.path() + "/ws") {
  umask(022);
  mkdir(base_.root().c_str(), 0755);
  // Made later, it would change when the root was modified.
  mkdir((base_.root() + "/.txfs").c_str(), 0700);
  options_.path = base_.root();
  options_.store = options_.path + "/.txfs";
  options_.filesystem.clock = &clock_;
  options_.journal.background_drain = false;
  options_.journal.intake_bytes = 256 << 10;
  options_.journal.map_bytes = 4 << 20;
  const Status prepared = Prepare(seed, after);
  is_usable_ =
      prepared || !operation_.disputed || prepared.error().code != ESTALE;
  if (is_usable_) {
    EXPECT_OK(prepared);
  }
}

// --- stages ----------------------------------------------------------------

Status CrashRig::Prepare(uint64_t seed, const Trees* after) {
  TRY(Work(seed));
  after_.base = after_.view = TRY(View());
  clock_.Advance();
  TRY(BringTo(operation_.stage));
  if (operation_.disputed) TRY(LetOthersWork(seed));
  before_.base = TRY(ViewOfBase());
  before_.view = TRY(View());
  TRY(ExpectAfter(after));
  TRY(ChoosePart(seed));
  TRY(CloseDriver());
  ended_before_ = HistoryIds().size();
  clock_.Advance();
  return {};
}

Status CrashRig::Work(uint64_t seed) {
  if (operation_.with_mount) mount_.emplace(base_.root() + "/w");
  VariedWork work(seed, operation_.with_mount);
  work.Prepare(base_);
  TRY(OpenDriver());
  original_ = TRY(ViewOfBase());
  if (operation_.stage == Stage::kSaved) {
    TRY(work.Do(*driver_, 1));
    TRY(driver_->MakeSavepoint("saved"));
    saved_ = TRY(View());
    clock_.Advance();
    TRY(work.Do(*driver_));
    return work.Ruin(*driver_);
  }
  return work.Do(*driver_);
}

Status CrashRig::BringTo(Stage stage) {
  if (stage == Stage::kOpen || stage == Stage::kSaved) return {};
  TRY(driver_->Commit());
  if (stage == Stage::kCommitted) return Reopen();
  after_.base = after_.view = TRY(ViewOfBase());
  return driver_->Undo("");
}

/// The transaction is seen as one that was resumed since.
Status CrashRig::LetOthersWork(uint64_t seed) {
  std::vector<std::string> made, changed;
  for (const NetChange& change : TRY(driver_->workspace().Changes(false))) {
    const bool moved = !change.old_path.empty();
    (change.kind == ChangeKind::kAdded ? made : changed)
        .push_back(moved ? change.old_path : change.path);
  }
  TRY(CloseDriver());
  DoOthersWork(base_, made, changed, seed);
  TRY(OpenDriver());
  original_ = TRY(ViewOfBase());
  return {};
}

/// Whose work was looked at is in after_.
Status CrashRig::ExpectAfter(const Trees* after) {
  if (operation_.disputed) {
    if (after != nullptr) after_ = *after;
    after_.same_base_inodes = after_.same_view_inodes = false;
  } else if (operation_.part) {
    if (after != nullptr) after_ = *after;
    // A commit of a part is not to be seen in the transaction, nor a discard
    // in the base.
    if (operation_.changes_base) {
      after_.view = before_.view;
    } else {
      after_.base = before_.base;
    }
    after_.same_view_inodes = false;
    after_.same_base_inodes = !operation_.changes_base;
  } else if (!operation_.changes_base) {
    after_ = before_;
    if (operation_.stage == Stage::kSaved) after_.view = saved_;
    if (!operation_.entry) after_.view = before_.base;
  } else if (operation_.stage == Stage::kOpen) {
    after_.same_base_inodes = after_.same_view_inodes = false;
  } else if (operation_.stage == Stage::kCommitted) {
    after_ = {.base = original_, .view = original_};
  }
  return {};
}

/// As somebody finds it who has just opened the workspace.
Status CrashRig::ChoosePart(uint64_t seed) {
  if (!operation_.part) return {};
  TRY(Reopen());
  const auto changes = TRY(driver_->workspace().Changes(true));
  std::mt19937_64 random(seed);
  const uint64_t one_of = 1 + random() % 4;
  for (const NetChange& change : changes) {
    if (random() % one_of != 0) continue;
    std::string path = change.path;
    if (random() % 3 == 0 && !change.old_path.empty()) path = change.old_path;
    part_.push_back(std::move(path));
  }
  if (part_.empty()) part_.push_back(changes.front().path);
  return {};
}

Status CrashRig::OpenDriver() {
  driver_ = TRY(CoreDriver::Start(
      base_.root(), {.journal = options_.journal, .clock = &clock_}));
  return {};
}

Status CrashRig::CloseDriver() {
  const Status closed = driver_->workspace().Close();
  driver_.reset();
  return closed;
}

Status CrashRig::Reopen() {
  TRY(CloseDriver());
  return OpenDriver();
}

Result<TreeView> CrashRig::ViewOfBase() {
  PosixDriver plain(base_.root());
  return ViewWithoutVaults(plain, operation_.with_mount);
}

Result<TreeView> CrashRig::View() {
  return ViewWithoutVaults(*driver_, operation_.with_mount);
}

// --- interrupting ----------------------------------------------------------

Status CrashRig::ActAndTell(Workspace& workspace) {
  TRY(operation_.act(workspace, part_));
  acknowledged_.Set();
  return {};
}

Result<Trees> CrashRig::Act() {
  TRY(OpenDriver());
  TRY(operation_.act(driver_->workspace(), part_));
  Trees trees;
  trees.base = TRY(ViewOfBase());
  trees.view = TRY(View());
  TRY(CloseDriver());
  return trees;
}

Ending CrashRig::CrashAt(uint64_t point) {
  return RunAndCrash(
      options_, [this](Workspace& workspace) { return ActAndTell(workspace); },
      point, false);
}

/// Nothing happens in the background, where there would be points, too.
Result<PastPoints> CrashRig::CountPastPoints() {
  driver_ = TRY(CoreDriver::Start(
      base_.root(),
      {.journal = options_.journal, .clock = &clock_, .collects = false}));
  PastPoints past;
  WatchPoints([&] {
    if (!std::filesystem::exists(InStore("intent"))) return;
    ++past.all;
    if (HistoryIds().size() == ended_before_) ++past.before_entry;
  });
  const Status done = operation_.act(driver_->workspace(), part_);
  SetCrashHook(nullptr);
  TRY(done);
  TRY(CloseDriver());
  return past;
}

Ending CrashRig::CrashAtPast(uint64_t point) {
  const auto act = [this, point](Workspace& workspace) {
    points_left = point;
    WatchPoints([intent = InStore("intent")] {
      if (::access(intent.c_str(), F_OK) == 0) CountPoint();
    });
    return ActAndTell(workspace);
  };
  return RunAndCrash(options_, act, 0, false);
}

Ending CrashRig::KillAfter(uint64_t microseconds) {
  return RunAndKill(
      options_, [this](Workspace& workspace) { return ActAndTell(workspace); },
      microseconds);
}

bool CrashRig::CrashRecoveryAt(uint64_t point) {
  const bool passed = PassedInStore();
  const auto nothing = [](Workspace&) { return Status(); };
  const Ending ending = RunAndCrash(options_, nothing, point, true);
  EXPECT_NE(ending, Ending::kFailed);
  EXPECT_EQ(PassedInStore(), passed)
      << "a crash in recovery changed the outcome";
  return ending == Ending::kCrashed;
}

Ending CrashRig::CutPower(uint64_t call, uint64_t seed,
                          const std::function<Status(Workspace&)>& act,
                          bool at_end) {
  const std::string graves = scratch_.path() + "/graves";
  ::mkdir(graves.c_str(), 0700);
  return WaitFor(Fork([&]() -> Status {
    PowerCut power(base_.root(), graves, seed, call);
    if (ignored_) power.IgnoreSyncsOf(*ignored_);
    const auto workspace = TRY(Workspace::Open(options_));
    TRY(act(*workspace));
    if (at_end) {
      power.CutNext();
      TRY(SyncDirectory(AT_FDCWD, base_.root()));
    }
    return workspace->Close();
  }));
}

Ending CrashRig::CutPowerAt(uint64_t call, uint64_t seed) {
  const Ending ending = CutPower(
      call, seed,
      [this](Workspace& workspace) { return ActAndTell(workspace); }, true);
  if (ending != Ending::kCrashed) return Ending::kFailed;
  return acknowledged_.IsSet() ? Ending::kSurvived : Ending::kCrashed;
}

bool CrashRig::CutPowerOfRecoveryAt(uint64_t call, uint64_t seed) {
  const bool passed = PassedInStore();
  const auto nothing = [](Workspace&) { return Status(); };
  const Ending ending = CutPower(call, seed, nothing, false);
  EXPECT_NE(ending, Ending::kFailed);
  EXPECT_EQ(PassedInStore(), passed)
      << "power loss in recovery changed the outcome";
  return ending == Ending::kCrashed;
}

std::vector<std::string> CrashRig::HistoryIds() const {
  std::vector<std::string> ids;
  for (const auto& entry :
       std::filesystem::directory_iterator(InStore("history"))) {
    std::string name = entry.path().filename();
    if (IsTransactionId(name)) ids.push_back(std::move(name));
  }
  return ids;
}

bool CrashRig::PassedInStore() const {
  return std::filesystem::exists(InStore("intent")) ||
         HistoryIds().size() > ended_before_;
}

// --- afterwards ------------------------------------------------------------

/// Of a workspace that is open, and so recovered.
Result<bool> CrashRig::Passed() {
  if (!operation_.entry) return PassedInStore();
  bool passed = false;
  TRY(driver_->workspace().ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    passed = entry.change.op == *operation_.entry;
    return true;
  }));
  return passed;
}

void CrashRig::DemandRecovery(bool go_on) {
  const bool passed_in_store = PassedInStore();
  // Half-way is no damage.
  if (go_on) {
    EXPECT_EQ(FindProblems(base_.root()), "");
  }
  ASSERT_OK(OpenDriver());
  EXPECT_EQ(PassedInStore(), passed_in_store) << "recovery changed the outcome";
  EXPECT_FALSE(std::filesystem::exists(InStore("intent")));
  const auto passed = Passed();
  ASSERT_OK(passed);
  if (acknowledged_.IsSet() && operation_.forgets_history) {
    DemandAllForgotten();
  } else if (acknowledged_.IsSet()) {
    EXPECT_TRUE(*passed) << "lost what was acknowledged";
  }
  Demand(*passed ? after_ : before_, *passed ? "after" : "before");
  ASSERT_OK(CloseDriver());
  DemandSoundStore();
  if (!go_on || ::testing::Test::HasFailure()) return;
  // What merges, repeated, has the time of the merge.
  if (!operation_.disputed) clock_.Advance();
  ASSERT_OK(OpenDriver());
  GoOn(*passed);
  ASSERT_OK(CloseDriver());
  DemandSoundStore();
}

void CrashRig::GoOn(bool passed) {
  if (operation_.entry) return GoOnWithTransaction(passed);
  if (operation_.forgets_history) return UndoWhatIsNotForgotten();
  if (!operation_.changes_base) return;
  if (!passed) {
    ASSERT_OK(operation_.act(driver_->workspace(), part_));
    ASSERT_OK(Reopen());
    Demand(after_, "repeated");
    return;
  }
  if (operation_.part) return GoOnWithRest();
  ASSERT_OK(driver_->Undo(std::ranges::max(HistoryIds())));
  Demand({.base = before_.base, .view = before_.base}, "taken back");
}

/// The rest of the transaction is committed, too; then both are taken back.
void CrashRig::GoOnWithRest() {
  ASSERT_OK(driver_->Commit());
  ASSERT_OK(Reopen());
  Demand({.base = before_.view,
          .view = before_.view,
          .same_base_inodes = false,
          .same_view_inodes = false},
         "the rest committed");
  clock_.Advance();
  for (const std::string& id : HistoryIds()) {
    const auto summary = driver_->workspace().store().history().Read(id);
    ASSERT_OK(summary);
    if (!summary->undoable) continue;
    ASSERT_OK(driver_->Undo(""));
    clock_.Advance();
  }
  Demand({.base = original_, .view = original_}, "all taken back");
}

/// The operation is repeated, more is done and rolled back, and the
/// transaction committed and taken back.
void CrashRig::GoOnWithTransaction(bool passed) {
  if (!passed) {
    ASSERT_OK(operation_.act(driver_->workspace(), part_));
    Demand(after_, "repeated");
  }
  const auto status = driver_->workspace().GetStatus();
  ASSERT_OK(status);
  if (!status->savepoints.empty()) {
    ASSERT_OK(driver_->Mkdir("since", 0700));
    ASSERT_OK(driver_->Rollback(""));
    Demand(after_, "rolled back");
  }
  ASSERT_OK(driver_->Commit());
  ASSERT_OK(Reopen());
  Demand({.base = after_.view,
          .view = after_.view,
          .same_base_inodes = false,
          .same_view_inodes = false},
         "committed");
  // What was rolled back may have been all there was.
  if (HistoryIds().empty()) return;
  ASSERT_OK(driver_->Undo(""));
  Demand({.base = original_, .view = original_}, "taken back");
}

void CrashRig::DemandAllForgotten() {
  const auto kept = driver_->workspace().store().history().ReadAll();
  ASSERT_OK(kept);
  for (const TransactionSummary& summary : *kept) {
    EXPECT_FALSE(summary.undoable) << summary.id << " is not forgotten";
  }
}

void CrashRig::UndoWhatIsNotForgotten() {
  const TransactionHistory& history = driver_->workspace().store().history();
  const std::string id = std::ranges::max(HistoryIds());
  const auto summary = history.Read(id);
  ASSERT_OK(summary);
  if (!summary->undoable) return;
  ASSERT_OK(driver_->Undo(id));
  Demand({.base = original_, .view = original_}, "taken back");
}

void CrashRig::Demand(const Trees& trees, const std::string& when) {
  const auto base = ViewOfBase();
  ASSERT_OK(base);
  EXPECT_EQ(Compare(trees.base, *base,
                    {.ino = trees.same_base_inodes, .ctime = false}),
            "")
      << "the base, " << when;
  const auto view = View();
  ASSERT_OK(view);
  // What is on a mount has another number in the view.
  const bool same_inodes = trees.same_view_inodes && !operation_.with_mount;
  EXPECT_EQ(Compare(trees.view, *view, {.ino = same_inodes, .ctime = false}),
            "")
      << "the transaction, " << when;
}

void CrashRig::DemandSoundStore() {
  EXPECT_EQ(FindProblems(base_.root()), "");
  const auto names = [&](const std::string& directory) {
    std::vector<std::string> found;
    std::error_code none;
    for (const auto& entry :
         std::filesystem::directory_iterator(InStore(directory), none)) {
      found.push_back(entry.path().filename());
    }
    return found;
  };
  const auto plans = std::ranges::count_if(
      names("history"),
      [](const std::string& name) { return name.ends_with(".plan"); });
  EXPECT_EQ(names("vault").size(), static_cast<size_t>(plans));
  const auto parts = names(std::string("../w/") + kMountVaults);
  EXPECT_LE(parts.size(), static_cast<size_t>(plans));
  EXPECT_EQ(names("txn").size(), 1U);
  EXPECT_EQ(names("trash").size(), 0U);
}

}  // namespace txfs::testing
