#include <gtest/gtest.h>
#include <sys/stat.h>

#include <optional>
#include <random>

#include "tests/journal/fixture.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

class SavepointTest : public ::testing::Test {
 protected:
  SavepointTest() {
    options_.background_drain = false;
    options_.map_bytes = 64 << 20;
    options_.io = &io_;
    auto journal = Journal::Create(dir_.Open(), options_);
    EXPECT_OK(journal);
    journal_ = std::move(*journal);
  }

  void Reopen() {
    journal_.reset();
    auto journal = Journal::Open(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
  }
  /// As when the process is killed: nothing more reaches the tables.
  void CrashAndReopen() {
    io_.commit_error = EIO;
    journal_.reset();
    io_.commit_error = 0;
    Reopen();
  }
  Lsn Mark(const std::string& name) {
    const Change change{.op = Op::kSavepoint, .path = name};
    const auto lsn = journal_->Append(change);
    EXPECT_OK(lsn);
    return lsn.value_or(kNoLsn);
  }
  Status RollBack(Lsn savepoint) {
    const Rewind rewind = TRY(
        journal_->Rollback({.op = Op::kRollback, .offset = Raw(savepoint)}));
    journal_->SettleRewind(rewind);
    return {};
  }
  void ExpectHas(const History& history) {
    Model loaded;
    ASSERT_OK(journal_->Load(loaded));
    EXPECT_TRUE(loaded == history.model);
    history.ExpectContents(*journal_);
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const Savepoint& savepoint : journal_->Savepoints()) {
      names.push_back(savepoint.name);
    }
    return names;
  }
  /// Writes `content` to the file 2 at `offset`, where nothing is.
  Extent Write(const std::string& content, uint64_t offset = 0) {
    const auto staged = journal_->Stage(AsBytes(content));
    EXPECT_OK(staged);
    Change change{.op = Op::kWrite};
    const Extent extent{offset, content.size(), staged->ref};
    change.edits.emplace_back(ExtentEdit{Ino{2}, {}, {extent}});
    EXPECT_OK(journal_->Append(change, &*staged));
    return extent;
  }
  void Erase(const Extent& extent) {
    Change change{.op = Op::kTruncate};
    change.edits.emplace_back(ExtentEdit{Ino{2}, {extent}, {}});
    const auto lsn = journal_->Append(change);
    ASSERT_OK(lsn);
    journal_->Release(extent, *lsn);
  }
  std::string Read(const Extent& extent) {
    std::string out(extent.length, '?');
    EXPECT_OK(journal_->Read(extent.content, 0,
                             std::as_writable_bytes(std::span(out))));
    return out;
  }
  /// Blocks of the segments.
  uint64_t SpoolBytes() {
    EXPECT_OK(journal_->Drain());
    uint64_t bytes = 0;
    for (int id = 1; id < 20; ++id) {
      char name[32];
      std::snprintf(name, sizeof name, "/spool/%08x", id);
      struct stat st{};
      if (::stat((dir_.path() + name).c_str(), &st) == 0) {
        bytes += static_cast<uint64_t>(st.st_blocks) * 512;
      }
    }
    return bytes;
  }

  TempDir dir_;
  FaultyIo io_;
  JournalOptions options_;
  std::unique_ptr<Journal> journal_;
};

constexpr size_t kBig = 512 << 10;

TEST_F(SavepointTest, IsThereAfterADrainACrashAndAReopening) {
  Mark("one");
  CrashAndReopen();
  EXPECT_EQ(Names(), std::vector<std::string>{"one"});
  Mark("two");
  Reopen();
  EXPECT_EQ(Names(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(SavepointTest, RollbackBringsTablesAndContentBackWhateverHappened) {
  const uint64_t seed = FirstSeed();
  SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  History history(seed);
  std::vector<std::pair<Lsn, History>> marks;
  for (int round = 0; round < 120; ++round) {
    switch (random() % 5) {
      case 0:
        marks.emplace_back(Mark("s" + std::to_string(round)), history);
        break;
      case 1: {
        if (marks.empty()) break;
        const size_t at = random() % marks.size();
        ASSERT_OK(RollBack(marks[at].first));
        history.GoBack(marks[at].second);
        marks.resize(at + 1, marks.front());
        break;
      }
      case 2:
        random() % 2 ? CrashAndReopen() : Reopen();
        break;
      default:
        for (unsigned i = random() % 40; i > 0; --i) {
          ASSERT_OK(history.Step(*journal_, i % 7 == 0 ? 60'000 : 3000));
        }
        if (random() % 2) ASSERT_OK(journal_->Drain());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectHas(history));
    ASSERT_EQ(journal_->Savepoints().size(), marks.size());
  }
  // Back through all of them: each still has what it needs.
  while (!marks.empty()) {
    ASSERT_OK(RollBack(marks.back().first));
    history.GoBack(marks.back().second);
    ASSERT_NO_FATAL_FAILURE(ExpectHas(history));
    marks.pop_back();
  }
}

TEST_F(SavepointTest, AFailedRollbackChangesNothingAndCanBeRepeated) {
  History history(3);
  for (int i = 0; i < 50; ++i) ASSERT_OK(history.Step(*journal_));
  const History past = history;
  const Lsn mark = Mark("s");
  for (int i = 0; i < 50; ++i) ASSERT_OK(history.Step(*journal_));
  ASSERT_OK(journal_->Drain());
  io_.commit_error = EIO;
  EXPECT_FALSE(RollBack(mark));
  io_.commit_error = 0;
  ExpectHas(history);
  ASSERT_OK(RollBack(mark));
  ExpectHas(past);
}

TEST_F(SavepointTest, ACrashRightAfterTheBatchLeavesTheStateAfter) {
  History history(4);
  for (int i = 0; i < 50; ++i) ASSERT_OK(history.Step(*journal_, 50'000));
  const History past = history;
  const Lsn mark = Mark("s");
  for (int i = 0; i < 50; ++i) ASSERT_OK(history.Step(*journal_, 50'000));
  // Without SettleRewind: nobody told the spool.
  ASSERT_OK(journal_->Rollback({.op = Op::kRollback, .offset = Raw(mark)}));
  CrashAndReopen();
  ExpectHas(past);
}

TEST_F(SavepointTest, LaterSavepointsGoAndUnknownOnesAreRefused) {
  const Lsn one = Mark("one");
  const Lsn two = Mark("two");
  ASSERT_OK(RollBack(one));
  EXPECT_EQ(Names(), std::vector<std::string>{"one"});
  EXPECT_ERRNO(RollBack(two), ENOENT);
  Reopen();
  EXPECT_EQ(Names(), std::vector<std::string>{"one"});
  EXPECT_ERRNO(RollBack(two), ENOENT);
}

TEST_F(SavepointTest, ContentOfBeforeIsKeptUntilNoSavepointNeedsIt) {
  const Extent old = Write(Content(1, kBig));
  Mark("s");
  Erase(old);
  EXPECT_GE(SpoolBytes(), kBig);
  EXPECT_EQ(Read(old), Content(1, kBig));
  Reopen();
  EXPECT_GE(SpoolBytes(), kBig);
  EXPECT_EQ(Read(old), Content(1, kBig));
  ASSERT_OK(journal_->Settle({.op = Op::kCommit}));
  ASSERT_OK(journal_->Drain());
  EXPECT_TRUE(Names().empty());
  EXPECT_LT(SpoolBytes(), kBig / 2);
  Reopen();
  EXPECT_TRUE(Names().empty());
}

TEST_F(SavepointTest, ContentOfSinceIsFreedWhenItDies) {
  Mark("s");
  const Extent young = Write(Content(1, kBig));
  EXPECT_GE(SpoolBytes(), kBig);
  Erase(young);
  EXPECT_LT(SpoolBytes(), kBig / 2);
}

TEST_F(SavepointTest, ContentBetweenTwoSavepointsGoesWithTheSecond) {
  const Lsn one = Mark("one");
  const Extent extent = Write(Content(1, kBig));
  const Lsn two = Mark("two");
  Erase(extent);
  for (const bool reopened : {false, true}) {
    if (reopened) Reopen();
    EXPECT_GE(SpoolBytes(), kBig);
    ASSERT_OK(RollBack(two));
    EXPECT_EQ(Read(extent), Content(1, kBig));
    Erase(extent);
  }
  ASSERT_OK(RollBack(one));
  EXPECT_LT(SpoolBytes(), kBig / 2);
}

TEST_F(SavepointTest, APlaceThatASavepointNeedsIsNotWrittenAgain) {
  const auto segment = journal_->NewSegment();
  ASSERT_OK(segment);
  const std::string content = Content(1, kBig);
  const auto staged = journal_->Stage(AsBytes(content), *segment, 0);
  ASSERT_OK(staged);
  const Extent extent{0, kBig, staged->ref};
  Change change{.op = Op::kWrite};
  change.edits.emplace_back(ExtentEdit{Ino{2}, {}, {extent}});
  ASSERT_OK(journal_->Append(change, &*staged));
  const Lsn mark = Mark("s");
  Erase(extent);
  Reopen();
  const auto other = journal_->Stage(AsBytes(Content(2, kBig)), *segment, 0);
  ASSERT_OK(other);
  EXPECT_NE(std::pair(other->ref.segment, other->ref.record_position),
            std::pair(*segment, uint64_t{0}));
  journal_->Abandon(*other);
  ASSERT_OK(RollBack(mark));
  EXPECT_EQ(Read(extent), content);
}

TEST_F(SavepointTest, TheWalkBackLeapsOverWhatWasRolledBackBefore) {
  const Lsn mark = Mark("s");
  Write("first");
  ASSERT_OK(RollBack(mark));
  Write("second", 100);
  const auto rewind = journal_->PlanRewind(mark, kNoLsn);
  ASSERT_OK(rewind);
  EXPECT_EQ(rewind->changes, 1u);
  ASSERT_EQ(rewind->inodes.size(), 1u);
  const Rewind::PastInode& past = rewind->inodes.front();
  EXPECT_EQ(past.ino, Ino{2});
  EXPECT_EQ(past.extents.size(), 1u);
  EXPECT_TRUE(past.extents.contains(100));
}

TEST_F(SavepointTest, TheHighestInodeNumberSinceIsKnownAfterReopening) {
  Mark("s");
  Change change{.op = Op::kCreate};
  change.edits.emplace_back(InodeEdit{Ino{77}, {}, InodeRecord{}});
  ASSERT_OK(journal_->Append(change));
  change.op = Op::kUnlink;
  change.edits = {InodeEdit{Ino{77}, InodeRecord{}, {}}};
  ASSERT_OK(journal_->Append(change));
  Reopen();
  EXPECT_EQ(journal_->highest_ino(), Ino{77});
}

}  // namespace
}  // namespace txfs
