#include "tests/conformance/crash_rig.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>

#include "journal/base/crash_point.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/varied_work.h"

namespace txfs::testing {
namespace {

constexpr int kFailed = 1;
std::atomic<uint64_t> points_left;

void CountPoint() {
  if (points_left.fetch_sub(1) == 1) ::kill(::getpid(), SIGKILL);
}

void Arm(uint64_t crash_at) {
  points_left = crash_at;
  SetCrashHook(CountPoint);
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

/// The root has the store in it, a mount its part of the vaults.
void IgnoreStoreIn(TreeView& view, bool with_mount) {
  view.at("").nlink = 0;
  if (with_mount) view.at("w").nlink = 0;
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

CrashRig::CrashRig(const Operation& operation, uint64_t seed)
    : operation_(operation), base_(scratch_.path() + "/ws") {
  umask(022);
  mkdir(base_.root().c_str(), 0755);
  options_.path = base_.root();
  options_.journal.background_drain = false;
  options_.journal.intake_bytes = 256 << 10;
  options_.journal.map_bytes = 4 << 20;
  EXPECT_OK(Prepare(seed));
}

// --- stages ----------------------------------------------------------------

Status CrashRig::Prepare(uint64_t seed) {
  if (operation_.with_mount) mount_.emplace(base_.root() + "/w");
  VariedWork work(seed, operation_.with_mount);
  work.Prepare(base_);
  TRY(OpenDriver());
  original_ = TRY(ViewOfBase());
  TRY(work.Do(*driver_));
  const TreeView worked = TRY(View());
  TRY(BringTo(operation_.stage));
  before_ = {.base = TRY(ViewOfBase()), .view = TRY(View())};
  switch (operation_.stage) {
    case Stage::kOpen:
      after_ = {.base = worked, .view = worked, .same_inodes = false};
      break;
    case Stage::kCommitted:
      after_ = {.base = original_, .view = original_};
      break;
    case Stage::kUndone:
      break;  // done below: the commit's own objects come back
  }
  if (!operation_.changes_base) after_ = {before_.base, before_.base};
  TRY(CloseDriver());
  ended_before_ = HistoryIds().size();
  return {};
}

Status CrashRig::BringTo(Stage stage) {
  if (stage == Stage::kOpen) return {};
  TRY(driver_->Commit());
  if (stage == Stage::kCommitted) return Reopen();
  const TreeView committed = TRY(ViewOfBase());
  after_ = {.base = committed, .view = committed};
  return driver_->Undo("");
}

Status CrashRig::OpenDriver() {
  driver_ = TRY(CoreDriver::Start(base_.root(), {.journal = options_.journal}));
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
  TreeView view = TRY(ViewTree(plain));
  IgnoreStoreIn(view, operation_.with_mount);
  return view;
}

Result<TreeView> CrashRig::View() {
  TreeView view = TRY(ViewTree(*driver_));
  IgnoreStoreIn(view, operation_.with_mount);
  return view;
}

// --- interrupting ----------------------------------------------------------

Ending CrashRig::CrashAt(uint64_t point) {
  return RunAndCrash(options_, operation_.act, point, operation_.while_opening);
}

Ending CrashRig::KillAfter(uint64_t microseconds) {
  return RunAndKill(options_, operation_.act, microseconds);
}

bool CrashRig::CrashRecoveryAt(uint64_t point) {
  const bool passed = Passed();
  const auto nothing = [](Workspace&) { return Status(); };
  const Ending ending = RunAndCrash(options_, nothing, point, true);
  EXPECT_NE(ending, Ending::kFailed);
  EXPECT_EQ(Passed(), passed) << "a crash in recovery changed the outcome";
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

bool CrashRig::Passed() const {
  return std::filesystem::exists(InStore("intent")) ||
         HistoryIds().size() > ended_before_;
}

// --- afterwards ------------------------------------------------------------

void CrashRig::DemandRecovery(bool go_on) {
  const bool passed = Passed();
  ASSERT_OK(OpenDriver());
  EXPECT_EQ(Passed(), passed) << "recovery changed the outcome";
  EXPECT_FALSE(std::filesystem::exists(InStore("intent")));
  Demand(passed ? after_ : before_, passed ? "after" : "before");
  ASSERT_OK(CloseDriver());
  DemandNoLitter();
  if (!go_on || ::testing::Test::HasFailure()) return;
  ASSERT_OK(OpenDriver());
  if (operation_.changes_base) GoOn(passed);
  if (operation_.forgets_history) UndoWhatIsNotForgotten();
  ASSERT_OK(CloseDriver());
  DemandNoLitter();
}

void CrashRig::GoOn(bool passed) {
  if (!passed) {
    ASSERT_OK(operation_.act(driver_->workspace()));
    ASSERT_OK(Reopen());
    Demand(after_, "repeated");
    return;
  }
  ASSERT_OK(driver_->Undo(std::ranges::max(HistoryIds())));
  Demand({.base = before_.base, .view = before_.base}, "taken back");
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
  EXPECT_EQ(
      Compare(trees.base, *base, {.ino = trees.same_inodes, .ctime = false}),
      "")
      << "the base, " << when;
  const auto view = View();
  ASSERT_OK(view);
  // What is on a mount has another number in the view.
  const bool same_inodes = trees.same_inodes && !operation_.with_mount;
  EXPECT_EQ(Compare(trees.view, *view, {.ino = same_inodes, .ctime = false}),
            "")
      << "the transaction, " << when;
}

void CrashRig::DemandNoLitter() {
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
