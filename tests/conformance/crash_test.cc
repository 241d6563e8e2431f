#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <random>

#include "fs/commit_run.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

/// One in so many crashes is followed by more.
constexpr uint64_t kGoOnEvery = 4;
/// More than the crash points of any recovery.
constexpr uint64_t kRecoveryPoints = 150;

Status Commit(Workspace& workspace) {
  const CommitReport report = TRY(workspace.Commit({.message = "message"}));
  if (!report.conflicts.empty()) {
    return Fail(EEXIST, "conflict: " + report.conflicts.front().path);
  }
  return {};
}

Status Undo(Workspace& workspace, const std::string& id) {
  const UndoReport report = TRY(workspace.Undo(id));
  if (!report.conflicts.empty()) {
    return Fail(EEXIST, "conflict: " + report.conflicts.front().path + " " +
                            report.conflicts.front().reason);
  }
  return {};
}

Status UndoNewest(Workspace& workspace) {
  return Undo(workspace, TRY(workspace.store().history().Ids()).back());
}

Status Discard(Workspace& workspace) {
  TRY(workspace.Discard());
  return {};
}

Status DoNothing(Workspace&) { return {}; }

/// The crash points gone through.
class Points {
 public:
  explicit Points(int quick) : wanted_(Scaled(quick)) {}
  ~Points() { std::cout << passed_ << " crash points" << std::endl; }
  Points(const Points&) = delete;
  Points& operator=(const Points&) = delete;

  void Pass() { ++passed_; }
  [[nodiscard]] bool Enough() const {
    return passed_ >= wanted_ || ::testing::Test::HasFailure();
  }

 private:
  const int wanted_;
  int passed_ = 0;
};

/// Crashes at one point after the other until the operation survives; in half
/// of the cases the recovery is crashed, too.
void CrashEverywhere(const Operation& operation, uint64_t seed,
                     Points& points) {
  std::mt19937_64 random(seed);
  Ending ending = Ending::kCrashed;
  for (uint64_t k = 1; ending == Ending::kCrashed; ++k) {
    SCOPED_TRACE(operation.name + ", TXFS_TEST_SEED=" + std::to_string(seed) +
                 ", crash point " + std::to_string(k));
    CrashRig rig(operation, seed);
    ending = rig.CrashAt(k);
    ASSERT_NE(ending, Ending::kFailed);
    if (ending == Ending::kCrashed) points.Pass();
    while (random() % 2 == 0 &&
           rig.CrashRecoveryAt(1 + random() % kRecoveryPoints)) {
      points.Pass();
    }
    rig.DemandRecovery(k % kGoOnEvery == 0);
    if (::testing::Test::HasFailure()) return;
  }
}

void CrashVariedWork(const Operation& operation, int quick) {
  Points points(quick);
  for (uint64_t seed = FirstSeed(); !points.Enough(); ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    CrashEverywhere(operation, seed, points);
  }
}

TEST(CrashTest, CommitIsWholeOrNotAtAll) {
  CrashVariedWork({.name = "commit", .act = Commit}, 900);
}

/// Filesystems there are without RENAME_EXCHANGE and RENAME_NOREPLACE.
TEST(CrashTest, CommitAndUndoAreWholeWithoutFlagsOfRename) {
  SetRenameHasFlags(false);
  CrashVariedWork({.name = "commit", .act = Commit}, 200);
  CrashVariedWork(
      {.name = "undo", .stage = Stage::kCommitted, .act = UndoNewest}, 100);
  SetRenameHasFlags(true);
}

TEST(CrashTest, UndoIsWholeOrNotAtAll) {
  CrashVariedWork(
      {.name = "undo", .stage = Stage::kCommitted, .act = UndoNewest}, 450);
}

TEST(CrashTest, UndoOfAnUndoIsWholeOrNotAtAll) {
  CrashVariedWork(
      {.name = "undo of undo", .stage = Stage::kUndone, .act = UndoNewest},
      450);
}

/// The same work on a filesystem that is mounted in the base, and across.
TEST(CrashTest, CommitAndUndoAreWholeWithAMountInTheBase) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  CrashVariedWork({.name = "commit", .act = Commit, .with_mount = true}, 150);
  CrashVariedWork({.name = "undo",
                   .stage = Stage::kCommitted,
                   .act = UndoNewest,
                   .with_mount = true},
                  80);
  CrashVariedWork({.name = "gc",
                   .stage = Stage::kCommitted,
                   .act = DoNothing,
                   .while_opening = true,
                   .changes_base = false,
                   .forgets_history = true,
                   .with_mount = true},
                  40);
}

TEST(CrashTest, DiscardIsWholeOrNotAtAll) {
  CrashVariedWork({.name = "discard", .act = Discard, .changes_base = false},
                  150);
}

TEST(CrashTest, ForgettingHistoryForgetsWholeCommits) {
  CrashVariedWork({.name = "gc",
                   .stage = Stage::kCommitted,
                   .act = DoNothing,
                   .while_opening = true,
                   .changes_base = false,
                   .forgets_history = true},
                  150);
}

/// Where no crash point is: inside LMDB, and between two system calls.
TEST(CrashTest, CommitIsWholeOrNotAtAllAtRandomMoments) {
  Points points(60);
  std::mt19937_64 random(FirstSeed());
  const Operation commit{.name = "commit", .act = Commit};
  while (!points.Enough()) {
    const uint64_t seed = random();
    CrashRig rig(commit, seed);
    const uint64_t after_us = random() % 40'000;
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed) + ", after " +
                 std::to_string(after_us) + " microseconds");
    ASSERT_NE(rig.KillAfter(after_us), Ending::kFailed);
    points.Pass();
    rig.DemandRecovery(random() % kGoOnEvery == 0);
  }
}

}  // namespace
}  // namespace txfs::testing
