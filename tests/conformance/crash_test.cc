#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "fs/commit/commit_run.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

/// One in so many crashes is followed by more.
constexpr uint64_t kGoOnEvery = 4;
/// More than the crash points of any recovery.
constexpr uint64_t kRecoveryPoints = 150;

Status Commit(Workspace& workspace, const Part& part) {
  const CommitReport report = TRY(
      workspace.Commit({.message = "message", .paths = part, .conflicts = {}}));
  return NoConflicts(report.conflicts);
}

Status Undo(Workspace& workspace, const std::string& id) {
  const UndoReport report = TRY(workspace.Undo(id));
  return NoConflicts(report.conflicts);
}

Status UndoNewest(Workspace& workspace, const Part&) {
  return Undo(workspace, TRY(workspace.store().history().Ids()).back());
}

Status Discard(Workspace& workspace, const Part& part) {
  if (part.empty()) {
    TRY(workspace.Discard());
  } else {
    TRY(workspace.DiscardPart(part));
  }
  return {};
}

Status MakeSavepoint(Workspace& workspace, const Part&) {
  TRY(workspace.MakeSavepoint("name"));
  return {};
}

/// Acknowledged, a savepoint survives a crash; synced, also the loss of power.
Status MakeSavepointAndSync(Workspace& workspace, const Part& part) {
  TRY(MakeSavepoint(workspace, part));
  return workspace.filesystem().Sync();
}

Status RollBack(Workspace& workspace, const Part&) {
  TRY(workspace.Rollback("saved"));
  return {};
}

Status ForgetHistory(Workspace& workspace, const Part&) {
  TRY(workspace.CollectGarbage({.commits = 0}));
  return {};
}

const Operation kCommit{.name = "commit", .act = Commit};
const Operation kUndo{
    .name = "undo", .stage = Stage::kCommitted, .act = UndoNewest};
const Operation kUndoOfAnUndo{
    .name = "undo of an undo", .stage = Stage::kUndone, .act = UndoNewest};
const Operation kCommitMine{.name = "commit of mine",
                            .act = SettleBy(OnConflict::kMine),
                            .disputed = true};
const Operation kCommitTheirs{.name = "commit of theirs",
                              .act = SettleBy(OnConflict::kTheirs),
                              .disputed = true};
const Operation kCommitMerge{.name = "commit that merges",
                             .act = SettleBy(OnConflict::kMerge),
                             .disputed = true};
const Operation kDiscard{
    .name = "discard", .act = Discard, .changes_base = false};
const Operation kCommitPart{
    .name = "commit of a part", .act = Commit, .part = true};
const Operation kDiscardPart{.name = "discard of a part",
                             .act = Discard,
                             .changes_base = false,
                             .part = true,
                             .entry = Op::kDiscard};
const Operation kMakeSavepoint{.name = "savepoint",
                               .act = MakeSavepoint,
                               .changes_base = false,
                               .entry = Op::kSavepoint};
const Operation kMakeSavepointAndSync{.name = "savepoint",
                                      .act = MakeSavepointAndSync,
                                      .changes_base = false,
                                      .entry = Op::kSavepoint};
const Operation kRollBack{.name = "rollback",
                          .stage = Stage::kSaved,
                          .act = RollBack,
                          .changes_base = false,
                          .entry = Op::kRollback};

const Operation kForget{.name = "gc",
                        .stage = Stage::kCommitted,
                        .act = ForgetHistory,
                        .changes_base = false,
                        .forgets_history = true};

/// For a test's name.
std::string NameOf(const Operation& operation) {
  std::string name = operation.name;
  std::erase(name, ' ');
  return name;
}

/// The crash points gone through, or images after power loss.
class Points {
 public:
  /// Numbers that repeat one: the seed, where it was, where the recovery was
  /// interrupted, too.
  using Point = std::vector<uint64_t>;

  explicit Points(int quick, const char* what = "crash points")
      : wanted_(Scaled(quick)), what_(what) {}
  ~Points() { std::cout << passed() << " " << what_ << std::endl; }
  Points(const Points&) = delete;
  Points& operator=(const Points&) = delete;

  /// Counts once what comes again.
  void Pass(const Point& point) { passed_.insert(point); }
  [[nodiscard]] int passed() const { return static_cast<int>(passed_.size()); }
  [[nodiscard]] int wanted() const { return wanted_; }
  [[nodiscard]] bool Enough() const {
    return passed() >= wanted_ || ::testing::Test::HasFailure();
  }
  /// Whether to try another seed: not after so many without a point that there
  /// can be none.
  [[nodiscard]] bool WantMore() {
    const bool idle = passed() == passed_before_;
    passed_before_ = passed();
    idle_seeds_ = idle ? idle_seeds_ + 1 : 0;
    return !Enough() && idle_seeds_ <= kMostIdleSeeds;
  }
  void DemandEnough() const {
    EXPECT_TRUE(Enough()) << "only " << passed() << " of " << wanted_ << " "
                          << what_;
  }

 private:
  static constexpr int kMostIdleSeeds = 100;

  const int wanted_;
  const char* const what_;
  std::set<Point> passed_;
  int passed_before_ = 0;
  int idle_seeds_ = 0;
};

/// What an operation on a part, or a disputed one, leads to; nothing for
/// others, of which the rig knows, where no conflict was settled, and where
/// there is nothing to compare.
std::optional<Trees> TreesAfter(const Operation& operation, uint64_t seed) {
  if (!operation.part && !operation.disputed) return std::nullopt;
  CrashRig rig(operation, seed);
  if (!rig.is_usable()) return std::nullopt;
  auto trees = rig.Act();
  if (!trees && IsUnsettled(trees.error())) return std::nullopt;
  EXPECT_OK(trees);
  if (operation.disputed && !HasSettled()) return std::nullopt;
  return trees ? std::optional(std::move(*trees)) : std::nullopt;
}

/// Crashes at one point after the other until the operation survives; in half
/// of the cases the recovery is crashed, too.
void CrashEverywhere(const Operation& operation, uint64_t seed,
                     Points& points) {
  const std::optional<Trees> after = TreesAfter(operation, seed);
  if (operation.disputed && !after) return;
  Ending ending = Ending::kCrashed;
  Picks picks(seed);
  for (uint64_t k = picks.Next(); ending == Ending::kCrashed;
       k = picks.Next()) {
    std::mt19937_64 random(seed ^ k << 32);
    SCOPED_TRACE(operation.name + ", TXFS_TEST_SEED=" + std::to_string(seed) +
                 ", crash point " + std::to_string(k));
    CrashRig rig(operation, seed, after ? &*after : nullptr);
    ending = rig.CrashAt(k);
    ASSERT_NE(ending, Ending::kFailed);
    Points::Point point{seed, k};
    if (ending == Ending::kCrashed) points.Pass(point);
    while (random() % 2 == 0) {
      point.push_back(1 + random() % kRecoveryPoints);
      if (!rig.CrashRecoveryAt(point.back())) break;
      points.Pass(point);
    }
    rig.DemandRecovery(k % kGoOnEvery == 0);
    if (::testing::Test::HasFailure()) return;
  }
}

void CrashVariedWork(const Operation& operation, int quick) {
  Points points(quick);
  for (uint64_t seed = FirstSeed(); points.WantMore(); ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    CrashEverywhere(operation, seed, points);
  }
  points.DemandEnough();
}

TEST(CrashTest, CommitIsWholeOrNotAtAll) { CrashVariedWork(kCommit, 900); }

/// Filesystems there are without RENAME_EXCHANGE and RENAME_NOREPLACE.
TEST(CrashTest, CommitAndUndoAreWholeWithoutFlagsOfRename) {
  SetRenameHasFlags(false);
  CrashVariedWork(kCommit, 100);
  CrashVariedWork(kUndo, 50);
  // And some of those have no hard links.
  SetExchangeHasLinks(false);
  CrashVariedWork(kCommit, 100);
  CrashVariedWork(kUndo, 50);
  SetExchangeHasLinks(true);
  SetRenameHasFlags(true);
}

TEST(CrashTest, UndoIsWholeOrNotAtAll) { CrashVariedWork(kUndo, 450); }

TEST(CrashTest, UndoOfAnUndoIsWholeOrNotAtAll) {
  CrashVariedWork(kUndoOfAnUndo, 450);
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
  Operation forget = kForget;
  forget.with_mount = true;
  CrashVariedWork(forget, 40);
}

TEST(CrashTest, DiscardIsWholeOrNotAtAll) { CrashVariedWork(kDiscard, 150); }

TEST(CrashTest, ForgettingHistoryForgetsWholeCommits) {
  CrashVariedWork(kForget, 150);
}

TEST(CrashTest, CommitOfAPartIsWholeOrNotAtAll) {
  CrashVariedWork(kCommitPart, 250);
}

TEST(CrashTest, ACommitThatSettlesConflictsIsWholeOrNotAtAll) {
  CrashVariedWork(kCommitMine, 150);
  CrashVariedWork(kCommitTheirs, 150);
  CrashVariedWork(kCommitMerge, 100);
}

TEST(CrashTest, DiscardOfAPartIsWholeOrNotAtAll) {
  CrashVariedWork(kDiscardPart, 60);
}

TEST(CrashTest, SavepointIsThereOrNot) { CrashVariedWork(kMakeSavepoint, 40); }

TEST(CrashTest, RollbackIsWholeOrNotAtAll) { CrashVariedWork(kRollBack, 60); }

// --- recovery --------------------------------------------------------------

/// The rig of an operation that died at a point past that of no return.
class DeadRig : public CrashRig {
 public:
  DeadRig(const Operation& operation, uint64_t seed, const Trees* after,
          uint64_t died_at)
      : CrashRig(operation, seed, after) {
    EXPECT_EQ(CrashAtPast(died_at), Ending::kCrashed);
  }
};

/// Where an operation dies: right behind the point of no return, among the
/// steps, and when the history has it.
std::set<uint64_t> ChooseDeaths(const PastPoints& past,
                                std::mt19937_64& random) {
  const uint64_t since_entry = past.all - past.before_entry;
  EXPECT_GT(past.before_entry, 2U);
  EXPECT_GT(since_entry, 0U);
  if (::testing::Test::HasFailure()) return {};
  return {1, 2 + random() % (past.before_entry - 1),
          past.before_entry + 1 + random() % since_entry};
}

/// Crashes the recovery of what died at one point after the other until it
/// survives.
void CrashRecovery(const Operation& operation, uint64_t seed,
                   const Trees* after, uint64_t died_at, Points& points) {
  bool crashed = true;
  Picks picks(seed ^ died_at);
  for (uint64_t k = picks.Next(); crashed; k = picks.Next()) {
    SCOPED_TRACE("recovery of a " + operation.name +
                 ", TXFS_TEST_SEED=" + std::to_string(seed) +
                 ", that died at point " + std::to_string(died_at) +
                 " past that of no return, point " + std::to_string(k));
    DeadRig rig(operation, seed, after, died_at);
    crashed = rig.CrashRecoveryAt(k);
    if (crashed) points.Pass({seed, died_at, k});
    rig.DemandRecovery(k % kGoOnEvery == 0);
    if (::testing::Test::HasFailure()) return;
  }
}

void CrashRecoveryEverywhere(const Operation& operation, uint64_t seed,
                             Points& points) {
  const std::optional<Trees> trees = TreesAfter(operation, seed);
  if (operation.disputed && !trees) return;
  const Trees* after = trees ? &*trees : nullptr;
  const auto past = CrashRig(operation, seed, after).CountPastPoints();
  ASSERT_OK(past);
  std::mt19937_64 random(seed);
  for (const uint64_t died_at : ChooseDeaths(*past, random)) {
    CrashRecovery(operation, seed, after, died_at, points);
    if (::testing::Test::HasFailure()) return;
  }
}

class CrashOfRecoveryTest
    : public ::testing::TestWithParam<std::pair<Operation, int>> {};

TEST_P(CrashOfRecoveryTest, ChangesNothingAboutWhatItLeadsTo) {
  const auto& [operation, quick] = GetParam();
  Points points(quick);
  for (uint64_t seed = FirstSeed(); points.WantMore(); ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    CrashRecoveryEverywhere(operation, seed, points);
  }
  points.DemandEnough();
}

INSTANTIATE_TEST_SUITE_P(
    Operations, CrashOfRecoveryTest,
    ::testing::Values(std::pair(kCommit, 150), std::pair(kCommitPart, 100),
                      std::pair(kUndo, 100), std::pair(kUndoOfAnUndo, 100),
                      std::pair(kCommitMerge, 100)),
    [](const ::testing::TestParamInfo<std::pair<Operation, int>>& test) {
      return NameOf(test.param.first);
    });

// --- random moments --------------------------------------------------------

constexpr uint64_t kShortestUs = 500;

/// Where no crash point is: inside LMDB, and between two system calls.
class CrashAtRandomMomentsTest : public ::testing::TestWithParam<Operation> {};

TEST_P(CrashAtRandomMomentsTest, IsWholeOrNotAtAll) {
  const Operation& operation = GetParam();
  uint64_t longest_us = 10'000;
  Points points(operation.changes_base && !operation.disputed ? 40 : 20);
  const uint64_t first_seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << first_seed << std::endl;
  std::mt19937_64 random(first_seed);
  const int most_attempts = 100 * points.wanted();
  for (int attempt = 0; !points.Enough() && attempt < most_attempts;
       ++attempt) {
    const uint64_t seed = random();
    const uint64_t after_us = random() % longest_us;
    SCOPED_TRACE(operation.name + ", " + std::to_string(points.passed()) +
                 " before, after " + std::to_string(after_us) +
                 " microseconds");
    const std::optional<Trees> after = TreesAfter(operation, seed);
    if (operation.disputed && !after) continue;
    CrashRig rig(operation, seed, after ? &*after : nullptr);
    const Ending ending = rig.KillAfter(after_us);
    ASSERT_NE(ending, Ending::kFailed);
    // How long it takes depends on the machine: so that about half of them hit.
    if (ending == Ending::kCrashed) {
      points.Pass({seed, after_us});
      longest_us = longest_us * 5 / 4;
    } else {
      longest_us = std::max(longest_us * 4 / 5, kShortestUs);
    }
    rig.DemandRecovery(random() % kGoOnEvery == 0);
  }
  EXPECT_TRUE(points.Enough()) << "it is over before it can be killed";
}

INSTANTIATE_TEST_SUITE_P(Operations, CrashAtRandomMomentsTest,
                         ::testing::Values(kCommit, kCommitPart, kUndo,
                                           kCommitMine, kCommitTheirs,
                                           kCommitMerge, kDiscard, kDiscardPart,
                                           kMakeSavepoint, kRollBack),
                         [](const ::testing::TestParamInfo<Operation>& test) {
                           return NameOf(test.param);
                         });

// --- power loss ------------------------------------------------------------

/// Takes the power away at calls all over an operation, and when it is done;
/// in a third of the cases that of the recovery, too. Ends with the first flaw
/// that `is_flawed` tells of. kFailed: the power could not be cut.
Ending CutPowerEverywhere(
    const Operation& operation, uint64_t seed, Points& images,
    const std::function<bool()>& is_flawed = ::testing::Test::HasFailure,
    const std::optional<std::string>& ignored_syncs = std::nullopt) {
  constexpr uint64_t kCallsBetween = 30;
  // More than the calls of any recovery.
  constexpr uint64_t kRecoveryCalls = 300;
  std::mt19937_64 random(seed);
  const std::optional<Trees> after = TreesAfter(operation, seed);
  if (operation.disputed && !after) return Ending::kSurvived;
  Ending ending = Ending::kCrashed;
  for (uint64_t call = 0; ending == Ending::kCrashed;) {
    call += 1 + random() % kCallsBetween;
    SCOPED_TRACE(operation.name + ", TXFS_TEST_SEED=" + std::to_string(seed) +
                 ", power cut at call " + std::to_string(call));
    CrashRig rig(operation, seed, after ? &*after : nullptr);
    if (ignored_syncs) rig.IgnoreSyncsOf(*ignored_syncs);
    ending = rig.CutPowerAt(call, random());
    if (ending == Ending::kFailed) break;
    Points::Point point{seed, call};
    images.Pass(point);
    while (random() % 3 == 0) {
      point.push_back(1 + random() % kRecoveryCalls);
      if (!rig.CutPowerOfRecoveryAt(point.back(), random())) break;
      images.Pass(point);
    }
    rig.DemandRecovery(random() % kGoOnEvery == 0);
    if (is_flawed()) break;
  }
  return ending;
}

void CutPowerOfVariedWork(const Operation& operation, int quick) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can take everything back";
  Points images(quick, "images");
  for (uint64_t seed = FirstSeed(); images.WantMore(); ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    ASSERT_NE(CutPowerEverywhere(operation, seed, images), Ending::kFailed);
  }
  images.DemandEnough();
}

class PowerCutOfTest
    : public ::testing::TestWithParam<std::pair<Operation, int>> {};

TEST_P(PowerCutOfTest, LeavesAllOrNothing) {
  CutPowerOfVariedWork(GetParam().first, GetParam().second);
}

TEST(PowerCutTest, LeavesAllOrNothingWithoutFlagsOfRename) {
  SetRenameHasFlags(false);
  CutPowerOfVariedWork(kCommit, 20);
  CutPowerOfVariedWork(kUndo, 10);
  SetExchangeHasLinks(false);
  CutPowerOfVariedWork(kCommit, 20);
  CutPowerOfVariedWork(kUndo, 10);
  SetExchangeHasLinks(true);
  SetRenameHasFlags(true);
}

INSTANTIATE_TEST_SUITE_P(
    Operations, PowerCutOfTest,
    ::testing::Values(std::pair(kCommit, 150), std::pair(kCommitPart, 60),
                      std::pair(kUndo, 80), std::pair(kUndoOfAnUndo, 40),
                      std::pair(kCommitMine, 30), std::pair(kCommitTheirs, 30),
                      std::pair(kCommitMerge, 20), std::pair(kForget, 20),
                      std::pair(kDiscard, 30), std::pair(kDiscardPart, 20),
                      std::pair(kMakeSavepointAndSync, 20),
                      std::pair(kRollBack, 20)),
    [](const ::testing::TestParamInfo<std::pair<Operation, int>>& test) {
      return NameOf(test.param.first);
    });

/// The tests above can fail: without one of the syncs of the protocol they do.
class PowerCutMissingSyncTest : public ::testing::TestWithParam<const char*> {};

TEST_P(PowerCutMissingSyncTest, IsFound) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can take everything back";
  ::testing::TestPartResultArray flaws;
  const auto is_flawed = [&] { return flaws.size() > 0; };
  const auto cut_power = [&](uint64_t seed, Points& images) {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::
            INTERCEPT_ONLY_CURRENT_THREAD,
        &flaws);
    return CutPowerEverywhere(kCommit, seed, images, is_flawed, GetParam());
  };
  Points images(1000, "images");
  for (uint64_t seed = FirstSeed(); !is_flawed() && !images.Enough(); ++seed) {
    ASSERT_NE(cut_power(seed, images), Ending::kFailed);
  }
  EXPECT_TRUE(is_flawed());
}

INSTANTIATE_TEST_SUITE_P(Paths, PowerCutMissingSyncTest,
                         ::testing::Values("", "/intent.new", "/.txfs"));

}  // namespace
}  // namespace txfs::testing
