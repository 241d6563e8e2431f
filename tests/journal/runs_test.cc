#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "journal/store.h"
#include "journal/summary.h"
#include "tests/format_page.h"
#include "tests/journal/fixture.h"

namespace txfs {
namespace {

/// The example of docs/format.md.
RunRecord ExampleRun() {
  return {.id = "run-abc234",
          .command = {"make", "test"},
          .outcome = RunOutcome::kRolledBack,
          .why = "exit 2",
          .code = 2,
          .begin = {1'700'000'000, 5},
          .milliseconds = 1200,
          .after = Lsn{3},
          .until = Lsn{9}};
}

TEST(RunsTest, TheExampleIsWhatThePageSays) {
  const Bytes bytes = EncodeRuns({ExampleRun()});
  EXPECT_EQ(Hex(ExampleBytes("runs")), Hex(bytes));
  const auto decoded = DecodeRuns(bytes);
  ASSERT_OK(decoded);
  EXPECT_EQ(*decoded, std::vector{ExampleRun()});
}

TEST(RunsTest, ASummaryHasANewVersionOnlyIfThereAreSome) {
  TransactionSummary summary{.id = "000000000001"};
  EXPECT_EQ(std::to_integer<int>(EncodeSummary(summary)[8]), 1);
  summary.runs = {ExampleRun()};
  Bytes bytes = EncodeSummary(summary);
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 3);
  const auto decoded = DecodeSummary(bytes);
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->runs, summary.runs);
  EXPECT_TRUE(decoded->denied.empty());
  summary.denied = {{"hooks", 10}};
  ASSERT_OK(DecodeSummary(EncodeSummary(summary)));
  EXPECT_EQ(DecodeSummary(EncodeSummary(summary))->denied, summary.denied);
}

TEST(RunsTest, DamageIsAnErrorWhereverItIs) {
  const Bytes sound = EncodeRuns({ExampleRun()});
  for (size_t i = 0; i < sound.size(); ++i) {
    Bytes damaged = sound;
    damaged[i] ^= std::byte{1};
    EXPECT_FALSE(DecodeRuns(damaged)) << i;
    EXPECT_FALSE(DecodeRuns(ByteSpan(sound).first(i))) << i;
  }
}

TEST(RunsTest, WhatIsTooLongIsCut) {
  RunRecord run = ExampleRun();
  run.command.assign(5000, "");
  EXPECT_TRUE(Bounded(run).is_cut);
  EXPECT_EQ(Bounded(run).command.size(), 1024U);
  run.command = {"cat", std::string(5000, 'x'), "rest"};
  run.why = std::string(5000, 'y');
  EXPECT_FALSE(DecodeRuns(EncodeRuns({run})));
  const RunRecord cut = Bounded(run);
  EXPECT_TRUE(cut.is_cut);
  EXPECT_EQ(cut.command,
            (std::vector<std::string>{"cat", std::string(1020, 'x')}));
  EXPECT_EQ(cut.why, std::string(255, 'y'));
  EXPECT_OK(DecodeRuns(EncodeRuns({cut})));
  run.command = {std::string(1023, 'x'), "rest"};
  run.why.clear();
  EXPECT_TRUE(Bounded(run).is_cut);
  EXPECT_OK(DecodeRuns(EncodeRuns({Bounded(run)})));
  run.command = {std::string(1023, 'x')};
  EXPECT_EQ(Bounded(run), run);
}

TEST(RunsTest, WhatNoTxfsWritesIsNotRead) {
  EXPECT_FALSE(DecodeRuns(
      EncodeRuns(std::vector<RunRecord>(kRunsKept + 1, ExampleRun()))));
  EXPECT_OK(
      DecodeRuns(EncodeRuns(std::vector<RunRecord>(kRunsKept, ExampleRun()))));
  RunRecord run = ExampleRun();
  run.outcome = static_cast<RunOutcome>(6);
  EXPECT_FALSE(DecodeRuns(EncodeRuns({run})));
  run = ExampleRun();
  run.id.clear();
  EXPECT_FALSE(DecodeRuns(EncodeRuns({run})));
}

TEST(RunsTest, HaveTheOperationsAfterTheirBeginUpToTheirEnd) {
  RunRecord run = ExampleRun();
  EXPECT_FALSE(HasOperation(run, Lsn{3}));
  EXPECT_TRUE(HasOperation(run, Lsn{4}));
  EXPECT_TRUE(HasOperation(run, Lsn{9}));
  EXPECT_FALSE(HasOperation(run, Lsn{10}));
  run.outcome = RunOutcome::kRunning;
  EXPECT_TRUE(HasOperation(run, Lsn{10}));
}

class RunsInStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.background_drain = false;
    options_.map_bytes = 1 << 20;
    auto store = Store::Open(dir_.Open(), dir_.path(), "/workspace");
    ASSERT_OK(store);
    store_ = std::move(*store);
    auto begun = store_->Begin("", {1'700'000'000, 0}, options_);
    ASSERT_OK(begun);
    begun_ = std::move(*begun);
  }
  std::vector<RunRecord> Listed() {
    const auto list = store_->List();
    EXPECT_TRUE(list && list->size() == 1);
    return list && list->size() == 1 ? list->front().runs
                                     : std::vector<RunRecord>();
  }
  [[nodiscard]] std::string Path() const {
    return dir_.path() + "/txn/" + begun_->id + "/runs";
  }

  TempDir dir_;
  JournalOptions options_;
  std::unique_ptr<Store> store_;
  std::optional<OpenTransaction> begun_;
};

TEST_F(RunsInStoreTest, AreListedWithTheirTransaction) {
  EXPECT_TRUE(Listed().empty());
  ASSERT_OK(store_->WriteRuns(begun_->id, {ExampleRun()}));
  ASSERT_OK(store_->WriteRuns(begun_->id, {ExampleRun(), ExampleRun()}));
  EXPECT_EQ(Listed(), (std::vector{ExampleRun(), ExampleRun()}));
}

TEST_F(RunsInStoreTest, AreNoneIfTheirFileIsDamaged) {
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path(), ""));
  EXPECT_TRUE(Listed().empty());
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path(), "TXFSRUN\n garbage"));
  EXPECT_TRUE(Listed().empty());
  // What is in the place of the new file is not written through.
  const std::string precious = dir_.path() + "/precious";
  ASSERT_OK(ReplaceFile(AT_FDCWD, precious, "x"));
  ASSERT_EQ(::symlink(precious.c_str(), (Path() + ".new").c_str()), 0);
  ASSERT_OK(store_->WriteRuns(begun_->id, {ExampleRun()}));
  EXPECT_EQ(*ReadWholeFile(AT_FDCWD, precious), "x");
  EXPECT_EQ(Listed(), std::vector{ExampleRun()});
}

TEST_F(RunsInStoreTest, AreInterruptedIfNobodyHasTheTransaction) {
  RunRecord run = ExampleRun();
  run.outcome = RunOutcome::kRunning;
  ASSERT_OK(store_->WriteRuns(begun_->id, {run, ExampleRun()}));
  EXPECT_EQ(Listed().front().outcome, RunOutcome::kRunning);
  begun_->journal.reset();
  {
    const FileLock released = std::move(begun_->lock);
  }
  const std::vector<RunRecord> listed = Listed();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_EQ(listed.front().outcome, RunOutcome::kInterrupted);
  EXPECT_EQ(listed.back(), ExampleRun());
}

}  // namespace
}  // namespace txfs
