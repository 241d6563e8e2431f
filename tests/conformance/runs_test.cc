#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/workspace/workspace.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// What a transaction records of runs.
class RunsTest : public ::testing::Test {
 protected:
  RunsTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    base_.File("f", "old");
    auto started = CoreDriver::Start(base_.root(), {});
    EXPECT_TRUE(started) << started.error().ToString();
    if (started) driver_ = std::move(*started);
  }

  CoreDriver& fs() { return *driver_; }
  Workspace& workspace() { return driver_->workspace(); }
  static RunRecord Run(const string& id, RunOutcome outcome) {
    return {.id = id, .command = {"make", id}, .outcome = outcome};
  }
  void Begin(const string& id) {
    workspace().BeginRun(Run(id, RunOutcome::kRunning));
  }
  void Settle(const string& id, RunOutcome outcome) {
    workspace().SettleRun(Run(id, outcome));
  }
  void End(const string& id, RunOutcome outcome) {
    workspace().EndRun(Run(id, outcome));
  }
  static string Text(const vector<RunRecord>& runs) {
    string text;
    for (const RunRecord& run : runs) {
      text += (text.empty() ? "" : ", ") + run.id + " " +
              string(OutcomeName(run.outcome));
    }
    return text;
  }
  string Open() { return Text(workspace().Runs()); }
  string Ended(const string& id) {
    const auto summary = workspace().store().history().Read(id);
    return summary ? Text(summary->runs) : summary.error().ToString();
  }
  string Commit(const vector<string>& paths = {}) {
    const auto report = workspace().Commit({.paths = paths});
    EXPECT_TRUE(report && report->committed());
    return report ? report->id : "";
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(RunsTest, ACommitTakesThemIntoTheHistory) {
  Begin("run-a");
  ASSERT_OK(fs().WriteFile("f", "kept"));
  End("run-a", RunOutcome::kKept);
  Begin("run-b");
  ASSERT_OK(fs().WriteFile("g", "new"));
  EXPECT_EQ(Open(), "run-a kept, run-b running");
  Settle("run-b", RunOutcome::kCommitted);
  EXPECT_EQ(Open(), "run-a kept, run-b running");
  const string id = Commit();
  EXPECT_EQ(Ended(id), "run-a kept, run-b committed");
  End("run-b", RunOutcome::kCommitted);
  EXPECT_EQ(Open(), "");
}

TEST_F(RunsTest, ADiscardTakesOneThatRollsBack) {
  Begin("run-a");
  ASSERT_OK(fs().WriteFile("f", "no"));
  Settle("run-a", RunOutcome::kRolledBack);
  const auto discarded = workspace().Discard();
  ASSERT_OK(discarded);
  EXPECT_EQ(Ended(discarded->id), "run-a rolled back");
  EXPECT_EQ(Open(), "");
}

TEST_F(RunsTest, OneThatStillRunsGoesOnInTheNextTransaction) {
  Begin("run-a");
  ASSERT_OK(fs().WriteFile("f", "new"));
  const string id = Commit();
  EXPECT_EQ(Ended(id), "run-a running");
  EXPECT_EQ(Open(), "run-a running");
  ASSERT_OK(fs().WriteFile("f", "newer"));
  EXPECT_TRUE(HasOperation(workspace().Runs().front(), Lsn{1}));
  // Somebody else discards while it is about to be committed.
  Settle("run-a", RunOutcome::kCommitted);
  const auto discarded = workspace().Discard();
  ASSERT_OK(discarded);
  EXPECT_EQ(Ended(discarded->id), "run-a running");
}

TEST_F(RunsTest, ACommitOfAPartHasOnlyTheRunThatMadeIt) {
  ASSERT_OK(fs().WriteFile("before", "x"));
  Begin("run-a");
  End("run-a", RunOutcome::kUnchanged);
  Begin("run-b");
  ASSERT_OK(fs().WriteFile("f", "new"));
  Settle("run-b", RunOutcome::kCommitted);
  EXPECT_EQ(Ended(Commit({"f"})), "run-b committed");
  End("run-b", RunOutcome::kCommitted);
  EXPECT_EQ(Open(), "run-a unchanged, run-b committed");
  ASSERT_OK(fs().WriteFile("f", "newer"));
  EXPECT_EQ(Ended(Commit({"f"})), "");
}

TEST_F(RunsTest, OnlyTheLastOnesAreKept) {
  for (size_t i = 0; i < kRunsKept + 2; ++i) {
    const string id = "run-" + std::to_string(i);
    Begin(id);
    End(id, RunOutcome::kUnchanged);
  }
  EXPECT_EQ(workspace().Runs().size(), kRunsKept);
  EXPECT_EQ(workspace().Runs().front().id, "run-2");
}

TEST_F(RunsTest, SurviveTheirDaemonAsInterrupted) {
  ASSERT_OK(fs().WriteFile("f", "before"));
  Begin("run-a");
  ASSERT_OK(fs().WriteFile("f", "new"));
  const Lsn after = workspace().Runs().front().after;
  EXPECT_NE(after, kNoLsn);
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Open(), "run-a interrupted");
  ASSERT_OK(fs().WriteFile("f", "newer"));
  const RunRecord run = workspace().Runs().front();
  EXPECT_EQ(run.command, (vector<string>{"make", "run-a"}));
  EXPECT_FALSE(HasOperation(run, after));
  EXPECT_TRUE(HasOperation(run, Next(after)));
  EXPECT_FALSE(HasOperation(run, Next(run.until)));
}

}  // namespace
}  // namespace txfs::testing
