// What ends, divides or rewinds a transaction on a disk that refuses one of the
// calls that it makes: in the store, in the vault or in the base.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/journal/disk_calls.h"
#include "tests/journal/fault_disk.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// After one in so many failures more is done.
constexpr uint64_t kMoreEvery = 4;
/// More than the calls of any recovery.
constexpr uint64_t kMostRecoveryCalls = 150;
/// After so many seeds without a fault there can be none.
constexpr int kMostIdleSeeds = 100;

Status TryCommit(Workspace& workspace, const Part& part) {
  const CommitReport report =
      TRY(workspace.Commit({.message = "", .paths = part, .conflicts = {}}));
  return NoConflicts(report.conflicts);
}

/// `part` is the id: repeated, it is to be about the same commit.
Status TryUndo(Workspace& workspace, const Part& part) {
  const UndoReport report = TRY(workspace.Undo(part.front()));
  return NoConflicts(report.conflicts);
}

Status TryDiscard(Workspace& workspace, const Part& part) {
  if (part.empty()) {
    TRY(workspace.Discard());
  } else {
    TRY(workspace.DiscardPart(part));
  }
  return {};
}

/// It is made before a sync can fail, and stays.
Status TrySavepoint(Workspace& workspace, const Part&) {
  if (TRY(workspace.GetStatus()).savepoints.empty()) {
    TRY(workspace.MakeSavepoint("name"));
  }
  return workspace.filesystem().Sync();
}

Status TryRollBack(Workspace& workspace, const Part&) {
  TRY(workspace.Rollback("saved"));
  return {};
}

Status TryGc(Workspace& workspace, const Part&) {
  TRY(workspace.CollectGarbage({.commits = 0}));
  return {};
}

/// What could not be done, and to what.
bool NamesSomething(const Error& error) {
  return error.message.find(' ') != std::string::npos &&
         !error.message.ends_with(" .");
}

/// How often what came of a call that failed.
struct Outcomes {
  int in_spite = 0;  ///< it was done all the same
  int refused = 0;   ///< and nothing happened
  int half_way = 0;
  int in_recovery = 0;
  std::map<int, int> of_error = {};  ///< those of the operation itself

  [[nodiscard]] int all() const {
    return in_spite + refused + half_way + in_recovery;
  }
};

std::ostream& operator<<(std::ostream& out, const Outcomes& outcomes) {
  out << outcomes.all() << " faults: " << outcomes.refused << " refused, "
      << outcomes.half_way << " half-way, " << outcomes.in_spite
      << " done in spite of it, " << outcomes.in_recovery << " in recovery";
  for (const auto& [error, count] : outcomes.of_error) {
    out << ", " << count << " " << strerrorname_np(error);
  }
  return out;
}

/// A workspace in which calls of one operation fail.
class FaultRig final : public CrashRig {
 public:
  FaultRig(const Operation& operation, uint64_t seed, const Trees* after)
      : CrashRig(operation, seed, after), random_(seed) {
    if (IsUndo()) part_ = {std::ranges::max(HistoryIds())};
  }

  /// What the operation leads to.
  Result<Trees> ActAndLook();
  /// Does the operation on a disk with this fault, then without. Demands that
  /// it was done, or failed and says whether it stopped half-way, and that it
  /// is done after the second time. Returns whether a call failed.
  bool FailAt(const FaultyDisk::Fault& fault, Outcomes& outcomes);

 private:
  using Driver = std::unique_ptr<CoreDriver>;

  [[nodiscard]] bool IsUndo() const {
    return operation_.stage == Stage::kCommitted && operation_.changes_base;
  }
  /// Without a thread of its own, so that what fails depends on the seed only.
  Result<Driver> OpenQuietly() {
    return CoreDriver::Start(
        base_.root(),
        {.journal = options_.journal, .clock = &clock_, .collects = false});
  }
  Status Act() { return operation_.act(driver_->workspace(), part_); }
  void DemandError(const Error& error, int code);
  void DemandDone(const std::string& when);
  void DemandNothingDone(const std::string& when);
  void GoOnAfter(bool half_way, Outcomes& outcomes);
  void RecoverWithFaults(Outcomes& outcomes);
  void Repeat(bool half_way);
  void GoOnNow();

  std::mt19937_64 random_;
};

Result<Trees> FaultRig::ActAndLook() {
  driver_ = TRY(OpenQuietly());
  // What is in a part is found where somebody has looked.
  TRY(View());
  TRY(Act());
  Trees trees;
  trees.base = TRY(ViewOfBase());
  trees.view = TRY(View());
  TRY(CloseDriver());
  return trees;
}

bool FaultRig::FailAt(const FaultyDisk::Fault& fault, Outcomes& outcomes) {
  auto opened = OpenQuietly();
  EXPECT_OK(opened);
  if (!opened) return false;
  driver_ = std::move(*opened);
  EXPECT_OK(View());
  FaultyDisk disk(base_.root(), true);
  disk.Expect(fault);
  const Status done = Act();
  disk.Recover();
  if (disk.has_failed()) ++outcomes.of_error[fault.error];
  SCOPED_TRACE("after " + (disk.has_failed() ? disk.failed() : "nothing") +
               (done ? "" : ": " + done.error().ToString()));
  if (done) {
    if (disk.has_failed()) ++outcomes.in_spite;
    DemandDone("done");
  } else {
    DemandError(done.error(), fault.error);
    const bool half_way =
        done.error().message.find("stopped half-way") != std::string::npos;
    ++(half_way ? outcomes.half_way : outcomes.refused);
    if (!half_way) DemandNothingDone("refused");
    GoOnAfter(half_way, outcomes);
  }
  if (::testing::Test::HasFailure()) return false;
  EXPECT_OK(Reopen());
  EXPECT_FALSE(std::filesystem::exists(InStore("intent")));
  DemandDone("opened again");
  EXPECT_OK(CloseDriver());
  DemandSoundStore();
  if (random_() % kMoreEvery == 0 && !::testing::Test::HasFailure()) GoOnNow();
  return disk.has_failed();
}

/// What is kept to take it back, or of the transaction, is sound, too.
void FaultRig::GoOnNow() {
  clock_.Advance();
  ASSERT_OK(OpenDriver());
  GoOn(true);
  ASSERT_OK(CloseDriver());
  DemandSoundStore();
}

/// It is that of the disk, and tells of something.
void FaultRig::DemandError(const Error& error, int code) {
  EXPECT_EQ(ErrnoName(error.code), ErrnoName(code)) << error.ToString();
  EXPECT_TRUE(NamesSomething(error)) << error.ToString();
}

void FaultRig::DemandDone(const std::string& when) {
  Demand(after_, when);
  const auto passed = Passed();
  ASSERT_OK(passed);
  const bool tells = operation_.entry || operation_.changes_base;
  EXPECT_TRUE(*passed || !tells) << when;
}

void FaultRig::DemandNothingDone(const std::string& when) {
  Demand(before_, when);
  EXPECT_FALSE(std::filesystem::exists(InStore("intent"))) << when;
}

void FaultRig::GoOnAfter(bool half_way, Outcomes& outcomes) {
  const bool reopens = random_() % 2 == 0;
  if (reopens) {
    EXPECT_OK(CloseDriver());
    if (half_way) RecoverWithFaults(outcomes);
    auto opened = OpenQuietly();
    ASSERT_OK(opened);
    driver_ = std::move(*opened);
    if (half_way) return DemandDone("recovered");
    DemandNothingDone("opened again after it was refused");
  }
  Repeat(half_way);
  DemandDone("repeated");
}

/// Who opens a workspace is told when what another left cannot be finished.
void FaultRig::RecoverWithFaults(Outcomes& outcomes) {
  while (random_() % 2 == 0) {
    FaultyDisk disk(base_.root(), true);
    disk.Expect({.first = 1 + random_() % kMostRecoveryCalls,
                 .error = DiskError(random_())});
    const auto opened = OpenQuietly();
    if (!disk.has_failed()) continue;
    ++outcomes.in_recovery;
    if (opened) continue;
    SCOPED_TRACE("recovery after " + disk.failed());
    EXPECT_TRUE(NamesSomething(opened.error())) << opened.error().ToString();
  }
}

void FaultRig::Repeat(bool half_way) {
  const Status done = Act();
  if (half_way && IsUndo()) {
    // It went on with what was half-way; that done, there is nothing to undo.
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("was undone by"), std::string::npos)
        << done.error().ToString();
    return;
  }
  ASSERT_OK(done);
}

struct FaultCase {
  Operation operation;
  int quick = 0;            ///< faults
  uint64_t most_apart = 1;  ///< of calls that fail in one run and the next
};

void PrintTo(const FaultCase& fault_case, std::ostream* out) {
  *out << fault_case.operation.name;
}

class CommitFaultTest : public ::testing::TestWithParam<FaultCase> {
 protected:
  /// Lets one call after the other fail until none does.
  void FailEverywhere(uint64_t seed);
  /// As many faults as wanted were met, with each error.
  [[nodiscard]] bool Enough() const {
    return outcomes_.all() >= Scaled(GetParam().quick) &&
           outcomes_.of_error.size() == std::size(kDiskErrors);
  }

  Outcomes outcomes_;
};

/// What an operation on a part, or a disputed one, leads to; the rig knows of
/// others. Nothing, too, where no conflict was settled, or nothing can be
/// compared.
std::optional<Trees> TreesOf(const Operation& operation, uint64_t seed) {
  if (!operation.part && !operation.disputed) return std::nullopt;
  FaultRig rig(operation, seed, nullptr);
  if (!rig.is_usable()) return std::nullopt;
  auto trees = rig.ActAndLook();
  if (!trees && IsUnsettled(trees.error())) return std::nullopt;
  EXPECT_OK(trees);
  if (operation.disputed && !HasSettled()) return std::nullopt;
  return trees ? std::optional(std::move(*trees)) : std::nullopt;
}

void CommitFaultTest::FailEverywhere(uint64_t seed) {
  const auto& [operation, quick, most_apart] = GetParam();
  std::mt19937_64 random(seed);
  const std::optional<Trees> after = TreesOf(operation, seed);
  if (operation.disputed && !after) return;
  bool failed = true;
  uint64_t call = 0;
  for (uint64_t number = seed; failed && !HasFailure(); ++number) {
    call += 1 + random() % most_apart;
    const FaultyDisk::Fault fault{.first = call,
                                  .error = DiskError(number),
                                  .short_write = random() % 4 == 0};
    SCOPED_TRACE(operation.name + ", TXFS_TEST_SEED=" + std::to_string(seed) +
                 ", call " + std::to_string(call) + ": " +
                 strerrorname_np(fault.error));
    FaultRig rig(operation, seed, after ? &*after : nullptr);
    failed = rig.FailAt(fault, outcomes_);
  }
}

TEST_P(CommitFaultTest, IsWholeOrNotAtAllOrGoesOn) {
  int idle_seeds = 0;
  for (uint64_t seed = FirstSeed();
       !Enough() && !HasFailure() && idle_seeds < kMostIdleSeeds; ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    const int before = outcomes_.all();
    FailEverywhere(seed);
    idle_seeds = outcomes_.all() == before ? idle_seeds + 1 : 0;
  }
  std::cout << outcomes_ << std::endl;
  EXPECT_TRUE(Enough() || HasFailure()) << "no call fails";
}

INSTANTIATE_TEST_SUITE_P(
    Operations, CommitFaultTest,
    ::testing::Values(
        FaultCase{{.name = "commit", .act = TryCommit}, 30, 30},
        FaultCase{{.name = "commit of a part", .act = TryCommit, .part = true},
                  20,
                  30},
        FaultCase{{.name = "commit of mine",
                   .act = SettleBy(OnConflict::kMine),
                   .disputed = true},
                  15,
                  20},
        FaultCase{{.name = "commit of theirs",
                   .act = SettleBy(OnConflict::kTheirs),
                   .disputed = true},
                  15,
                  20},
        FaultCase{{.name = "commit that merges",
                   .act = SettleBy(OnConflict::kMerge),
                   .disputed = true},
                  15,
                  20},
        FaultCase{{.name = "undo", .stage = Stage::kCommitted, .act = TryUndo},
                  25,
                  25},
        FaultCase{{.name = "discard", .act = TryDiscard, .changes_base = false},
                  12,
                  8},
        FaultCase{{.name = "discard of a part",
                   .act = TryDiscard,
                   .changes_base = false,
                   .part = true,
                   .entry = Op::kDiscard},
                  15,
                  4},
        FaultCase{{.name = "savepoint",
                   .act = TrySavepoint,
                   .changes_base = false,
                   .entry = Op::kSavepoint},
                  8,
                  3},
        FaultCase{{.name = "rollback",
                   .stage = Stage::kSaved,
                   .act = TryRollBack,
                   .changes_base = false,
                   .entry = Op::kRollback},
                  15,
                  4},
        FaultCase{{.name = "gc",
                   .stage = Stage::kCommitted,
                   .act = TryGc,
                   .changes_base = false,
                   .forgets_history = true},
                  40,
                  3}),
    [](const ::testing::TestParamInfo<FaultCase>& test) {
      std::string name = test.param.operation.name;
      std::erase(name, ' ');
      return name;
    });

/// Refuses, with EIO, the calls that it is told to.
class Refusals final : public DiskWatch {
 public:
  using Choice = std::function<bool(const DiskCall& call)>;

  Refusals(std::string root, Choice refused)
      : DiskWatch(std::move(root)), refused_(std::move(refused)) {
    Begin();
  }
  ~Refusals() override { End(); }
  int Before(DiskCall& call) override { return refused_(call) ? EIO : 0; }
  void After(const DiskCall&) override {}
  [[nodiscard]] bool sees_everything() const override { return true; }

 private:
  const Choice refused_;
};

bool FinishesIntent(const DiskCall& call) {
  return call.kind == DiskCall::Kind::kRename && call.path.ends_with("/intent");
}

/// Over a base in which `a` has a second name, so that it is patched in place.
class LastStepTest : public ::testing::Test {
 protected:
  void SetUp() override {
    mkdir(base_.root().c_str(), 0755);
    base_.File("a", string(9000, 's'));
    base_.HardLink("a", "second");
    base_.File("b", string(9000, 's'));
    ASSERT_NO_FATAL_FAILURE(Start());
    ASSERT_OK(fs().PatchFile("a", 10, "patched"));
    ASSERT_OK(fs().PatchFile("b", 10, "patched"));
  }
  void Start() {
    auto started = CoreDriver::Start(base_.root(),
                                     {.journal = {.background_drain = false}});
    ASSERT_OK(started);
    driver_ = std::move(*started);
  }
  CoreDriver& fs() { return *driver_; }
  string InBase(const string& path) { return base_.Read(path).substr(10, 7); }

  const TempDir scratch_;
  BaseTree base_{scratch_.path() + "/ws"};
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(LastStepTest, WhatWasDoneSinceIsNotTakenBackByWhoFindsTheIntent) {
  {
    const Refusals refusals(base_.root(), FinishesIntent);
    ASSERT_OK(fs().Commit());
  }
  PosixDriver plain(base_.root());
  ASSERT_OK(plain.PatchFile("a", 10, "by them"));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(InBase("a"), "by them");
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(LastStepTest, WhoFindsTheIntentFindsAllThatAnUndoNeeds) {
  {
    const Refusals refusals(base_.root(), FinishesIntent);
    ASSERT_OK(fs().Commit());
    // What frees history has its turn.
    driver_.reset();
  }
  ASSERT_NO_FATAL_FAILURE(Start());
  EXPECT_EQ(FindProblems(base_.root()), "");
  ASSERT_OK(fs().Undo(""));
  EXPECT_EQ(InBase("a"), "sssssss");
}

/// The history has it already, and what ends a transaction has tidied up.
TEST_F(LastStepTest, ARepeatThatIsCutOffIsRepeated) {
  // All of it anew, which is done by emptying it.
  ASSERT_OK(fs().WriteFile("a", string(9000, 't')));
  const auto expect_half_way = [&](const Refusals::Choice& refused) {
    const Refusals refusals(base_.root(), refused);
    const Status done = fs().Commit();
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().ToString().find("stopped half-way"), string::npos)
        << done.error().ToString();
  };
  expect_half_way([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRename &&
           call.new_path.find("/.txfs/txn/") != string::npos &&
           call.path.ends_with(".new");
  });
  expect_half_way([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kWrite && call.path.ends_with("/a");
  });
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(base_.Read("a"), string(9000, 't'));
  EXPECT_EQ(InBase("b"), "patched");
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(LastStepTest, APartWhoseIntentIsGoneIsDone) {
  {
    bool gone = false;
    const Refusals refusals(base_.root(), [&](const DiskCall& call) {
      gone = gone || FinishesIntent(call);
      return gone && call.kind == DiskCall::Kind::kSync &&
             call.path.ends_with(".txfs");
    });
    const auto part = fs().workspace().Commit({.paths = {"a"}});
    ASSERT_OK(part);
    EXPECT_TRUE(part->partial);
    EXPECT_TRUE(gone);
  }
  EXPECT_EQ(InBase("a"), "patched");
  // The next one is a commit like any other.
  bool has_intent = false;
  {
    const Refusals watch(base_.root(), [&](const DiskCall& call) {
      has_intent = has_intent || call.new_path.ends_with("/intent");
      return false;
    });
    ASSERT_OK(fs().Commit());
  }
  EXPECT_TRUE(has_intent);
  EXPECT_EQ(InBase("b"), "patched");
  ASSERT_OK(fs().Undo(""));
  EXPECT_EQ(InBase("b"), "sssssss");
}

TEST_F(LastStepTest, WhoAsksForEverythingGetsTheRestOfAPartAndTheRest) {
  {
    const Refusals refusals(base_.root(), FinishesIntent);
    const auto part = fs().workspace().Commit({.paths = {"a"}});
    ASSERT_FALSE(part);
    EXPECT_NE(part.error().ToString().find("stopped half-way"), string::npos);
  }
  EXPECT_EQ(fs().workspace().GetStatus().value().state,
            TransactionState::kCommitting);
  EXPECT_EQ(InBase("b"), "sssssss");
  const auto all = fs().workspace().Commit({});
  ASSERT_OK(all);
  EXPECT_FALSE(all->partial);
  EXPECT_EQ(InBase("b"), "patched");
  EXPECT_EQ(fs().workspace().GetStatus().value().state,
            TransactionState::kActive);
  EXPECT_EQ(FindProblems(base_.root()), "");
}

/// What could not begin in the place of another, nor be taken back, is in
/// nobody's way.
class FollowerTest : public LastStepTest,
                     public ::testing::WithParamInterface<bool> {
 protected:
  Status End() { return GetParam() ? fs().Commit() : fs().Discard(); }
};

TEST_P(FollowerTest, WhatCouldNotBeginIsNotTakenForWhatGoesOn) {
  {
    bool begun = false;
    const Refusals refusals(base_.root(), [&](const DiskCall& call) {
      const bool syncs = call.kind == DiskCall::Kind::kSync;
      begun = begun || (syncs && call.path.ends_with("/txn"));
      return begun && (syncs || call.new_path.find("/trash/") != string::npos);
    });
    EXPECT_FALSE(End());
    EXPECT_TRUE(begun);
  }
  ASSERT_OK(End());
  ASSERT_OK(fs().WriteFile("new", "of what goes on"));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(fs().ReadFile("new").value_or(""), "of what goes on");
  ASSERT_OK(fs().workspace().Close());
  EXPECT_EQ(FindProblems(base_.root()), "");
}

INSTANTIATE_TEST_SUITE_P(Ends, FollowerTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Commit" : "Discard";
                         });

/// A directory that the base has under its new name already, in which nobody
/// looked at anything before.
TEST_F(LastStepTest, WhatIsInAMovedDirectoryIsThereWhileACommitIsHalfWay) {
  base_.File("d/in/f", "content");
  base_.File("e/other", "of what had the name");
  ASSERT_OK(fs().Rename("e", "elsewhere", 0));
  ASSERT_OK(fs().Rename("d", "e", 0));
  {
    const Refusals refusals(base_.root(), [](const DiskCall& call) {
      return call.new_path.ends_with(".image") || call.path.ends_with(".image");
    });
    ASSERT_FALSE(fs().Commit());
  }
  ASSERT_TRUE(base_.Exists("e/in/f"));
  EXPECT_EQ(fs().Names("e").value(), std::vector<string>{"in"});
  EXPECT_EQ(fs().Names("elsewhere").value(), std::vector<string>{"other"});
  EXPECT_EQ(fs().ReadFile("e/in/f").value_or("?"), "content");
  EXPECT_EQ(fs().ReadFile("elsewhere/other").value_or("?"),
            "of what had the name");
  EXPECT_EQ(fs().ListXattrs("e/in/f").value().size(), 0U);
  EXPECT_ERRNO(fs().Stat("e/other"), ENOENT);
  EXPECT_ERRNO(fs().WriteFile("e/new", ""), EROFS);
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(fs().ReadFile("e/in/f").value(), "content");
  EXPECT_OK(fs().WriteFile("e/new", ""));
}

TEST_F(LastStepTest, WhoHasAFileOpenKeepsItWhateverOthersTellOfTheBase) {
  base_.File("d/in/f", "content");
  const auto file = fs().Open("d/in/f", O_RDWR, 0);
  ASSERT_OK(file);
  ASSERT_OK(fs().Rename("d", "e", 0));
  {
    const Refusals refusals(base_.root(), [](const DiskCall& call) {
      return call.new_path.ends_with(".image") || call.path.ends_with(".image");
    });
    ASSERT_FALSE(fs().Commit());
  }
  ASSERT_OK(fs().workspace().Refresh());
  EXPECT_EQ(fs().ReadAt(*file, 0, 100).value_or("?"), "content");
  ASSERT_OK(fs().Commit());
  ASSERT_OK(fs().WriteAt(*file, 0, "CONTENT"));
  EXPECT_EQ(fs().ReadFile("e/in/f").value_or("?"), "CONTENT");
  ASSERT_OK(fs().Close(*file));
}

TEST_F(LastStepTest, AConflictOfTheRestIsToldWithThePartThatWasFinished) {
  {
    const Refusals refusals(base_.root(), FinishesIntent);
    ASSERT_FALSE(fs().workspace().Commit({.paths = {"a"}}));
  }
  PosixDriver plain(base_.root());
  ASSERT_OK(plain.PatchFile("b", 10, "by them"));
  const auto all = fs().workspace().Commit({});
  ASSERT_OK(all);
  EXPECT_EQ(all->conflicts.size(), 1U);
  EXPECT_EQ(all->finished,
            std::ranges::max(*fs().workspace().store().history().Ids()));
  EXPECT_EQ(InBase("a"), "patched");
  EXPECT_EQ(InBase("b"), "by them");
}

}  // namespace
}  // namespace txfs::testing
