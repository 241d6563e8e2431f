#include "journal/journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "journal/check.h"
#include "journal/db.h"
#include "journal/rows.h"
#include "tests/journal/fixture.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    options_.background_drain = false;
    options_.map_bytes = 64 << 20;
    options_.io = &io_;
  }

  void Create() {
    auto journal = Journal::Create(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
  }
  void Open() {
    auto journal = Journal::Open(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
  }
  /// Drops the journal as a crash would: nothing more reaches the tables.
  void Crash() {
    io_.commit_error = EIO;
    journal_.reset();
    io_.commit_error = 0;
  }
  void Steps(History& history, int count, size_t max_content = 3000) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(history.Step(*journal_, max_content));
    }
  }
  void ExpectHas(const History& history) {
    Model loaded;
    ASSERT_OK(journal_->Load(loaded));
    EXPECT_TRUE(loaded == history.model);
    history.ExpectContents(*journal_);
  }
  /// One write of `content` to the file 2 at `offset`.
  Extent Write(const std::string& content, uint64_t offset = 0) {
    auto staged = journal_->Stage(AsBytes(content));
    EXPECT_OK(staged);
    Change change{.op = Op::kWrite};
    const Extent extent{offset, content.size(), staged->ref};
    change.edits.emplace_back(ExtentEdit{Ino{2}, {}, {extent}});
    EXPECT_OK(journal_->Append(change, &*staged));
    return extent;
  }
  /// Makes `extent` go away.
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
  [[nodiscard]] std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  uint64_t Blocks(const std::string& name) {
    struct stat st{};
    return ::stat(Path(name).c_str(), &st) == 0
               ? static_cast<uint64_t>(st.st_blocks) * 512
               : 0;
  }
  uint64_t Size(const std::string& name) {
    struct stat st{};
    return ::stat(Path(name).c_str(), &st) == 0
               ? static_cast<uint64_t>(st.st_size)
               : 0;
  }
  void Overwrite(const std::string& name, uint64_t at, std::string_view bytes) {
    const auto fd = OpenAt(AT_FDCWD, Path(name), O_RDWR);
    ASSERT_OK(fd);
    ASSERT_OK(WriteFully(fd->get(), at, AsBytes(bytes)));
  }

  TempDir dir_;
  FaultyIo io_;
  JournalOptions options_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, LoadsWhatWasAppended) {
  Create();
  History history(1);
  Steps(history, 300);
  ExpectHas(history);

  journal_.reset();
  Open();

  ExpectHas(history);
  EXPECT_EQ(journal_->last_lsn(), Lsn{300});
}

TEST_F(JournalTest, RecoversWhatWasNotDrained) {
  Create();
  History history(2);
  for (int round = 0; round < 5; ++round) {
    Steps(history, 100, 30'000);
    Crash();
    Open();
    ExpectHas(history);
  }
}

TEST_F(JournalTest, RecoveryMayCrashAtEveryCommit) {
  Create();
  options_.intake_bytes = 8 << 20;
  History history(3);
  Steps(history, 800, 8000);
  Crash();
  int failures = 0;
  for (;; ++failures) {
    io_.commits_until_error = failures;
    auto journal = Journal::Open(dir_.Open(), options_);
    if (journal) {
      journal_ = std::move(*journal);
      break;
    }
    EXPECT_EQ(journal.error().code, EIO);
  }
  io_.commits_until_error = -1;

  EXPECT_GE(failures, 2);
  ExpectHas(history);
  EXPECT_EQ(journal_->last_lsn(), Lsn{800});
}

TEST_F(JournalTest, SurvivesSigkillAtAnyMoment) {
  const uint64_t seed = FirstSeed();
  SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int round = 0; round < 5; ++round) {
    TempDir dir;
    const uint64_t history_seed = random();
    const size_t acknowledgements = 1 + random() % 1500;
    int pipe[2];
    ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      JournalOptions options{.intake_bytes = 256 << 10, .drain_interval_ms = 1};
      auto journal = Journal::Create(dir.Open(), options);
      History history(history_seed);
      while (journal && history.Step(**journal, 20'000) &&
             ::write(pipe[1], "x", 1) == 1) {
      }
      ::_exit(1);
    }
    ::close(pipe[1]);
    char acknowledged = 0;
    size_t count = 0;
    while (count < acknowledgements && ::read(pipe[0], &acknowledged, 1) == 1) {
      ++count;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(pipe[0], &acknowledged, 1) == 1) ++count;
    ::close(pipe[0]);
    ASSERT_GE(count, acknowledgements);

    auto recovered = Journal::Open(dir.Open(), options_);
    ASSERT_OK(recovered);
    const uint64_t steps = Raw((*recovered)->last_lsn());
    EXPECT_GE(steps, count);
    EXPECT_LE(steps, count + 1);
    TempDir other;
    auto replayed = Journal::Create(other.Open(), options_);
    ASSERT_OK(replayed);
    History history(history_seed);
    for (uint64_t i = 0; i < steps; ++i) {
      ASSERT_OK(history.Step(**replayed, 20'000));
    }
    Model loaded;
    ASSERT_OK((*recovered)->Load(loaded));
    EXPECT_TRUE(loaded == history.model);
    history.ExpectContents(**recovered);
  }
}

TEST_F(JournalTest, TablesThatLostTheirLastBatchesAreCaughtUp) {
  Create();
  History history(4);
  Steps(history, 50);
  ASSERT_OK(journal_->Drain());
  const auto old_tables = ReadWholeFile(AT_FDCWD, Path("db/data.mdb"));
  ASSERT_OK(old_tables);
  Steps(history, 50);
  ASSERT_OK(journal_->Drain());
  Steps(history, 50);
  Crash();
  Overwrite("db/data.mdb", 0, *old_tables);

  Open();

  ExpectHas(history);
}

TEST_F(JournalTest, APageOfTheLogIsReadWithoutTheDisk) {
  Create();
  Write("drained");
  ASSERT_OK(journal_->Drain());
  Write("not drained");
  io_.commit_error = io_.sync_error = EIO;
  size_t visited = 0;
  ASSERT_OK(journal_->ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    EXPECT_EQ(entry.lsn, Lsn{1});
    return ++visited < 1;
  }));
  EXPECT_EQ(visited, 1U);
  // What follows is in the ring, and does not get to the tables.
  visited = 0;
  const auto count = [&](const LogEntry&) { return ++visited > 0; };
  EXPECT_FALSE(journal_->ReadLog(Lsn{1}, count));
  EXPECT_EQ(visited, 1U);
  io_.commit_error = io_.sync_error = 0;
  visited = 0;
  ASSERT_OK(journal_->ReadLog(Lsn{1}, count));
  EXPECT_EQ(visited, 2U);
}

TEST_F(JournalTest, AWriteThatLostItsContentEndsThePrefix) {
  Create();
  const Extent small = Write(Content(1, 100), 0);
  const Extent large = Write(Content(2, kInlineContentMax + 1), 1000);
  Write(Content(3, 100), 100'000);
  Crash();
  Overwrite("spool/00000001", large.content.record_position + 5000, "lost");

  Open();

  EXPECT_EQ(journal_->last_lsn(), Lsn{1});
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_EQ(loaded.extents.size(), 1U);
  EXPECT_EQ(Read(small), Content(1, 100));
}

TEST_F(JournalTest, RecordsOfALostFutureStayLost) {
  Create();
  const Extent first = Write(Content(1, 100), 0);
  for (uint64_t i = 2; i < 20; ++i) Write(Content(i, 100), i * 1000);
  Crash();
  // The second record is torn; the ones after it are whole.
  Overwrite("intake", 4096 + 400, std::string(60, 'x'));
  Open();
  const Lsn survived = journal_->last_lsn();
  ASSERT_LT(survived, Lsn{4});

  Write(Content(1000, 100), 500'000);
  Crash();
  Open();

  EXPECT_EQ(journal_->last_lsn(), Next(survived));
  EXPECT_EQ(Read(first), Content(1, 100));
}

TEST_F(JournalTest, AnyDamageToTheIntakeLeavesAPrefix) {
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    TempDir dir;
    auto journal = Journal::Create(dir.Open(), options_);
    ASSERT_OK(journal);
    History history(5);
    for (int i = 0; i < 30; ++i) ASSERT_OK(history.Step(**journal));
    io_.commit_error = EIO;
    journal->reset();
    io_.commit_error = 0;
    const auto fd = OpenAt(AT_FDCWD, dir.path() + "/intake", O_RDWR);
    ASSERT_OK(fd);
    ASSERT_OK(WriteFully(fd->get(), 4096 + random() % 30'000,
                         AsBytes(Content(random(), 1 + random() % 100))));

    auto recovered = Journal::Open(dir.Open(), options_);

    ASSERT_OK(recovered);
    TempDir other;
    auto replayed = Journal::Create(other.Open(), options_);
    ASSERT_OK(replayed);
    History prefix(5);
    for (uint64_t i = 0; i < Raw((*recovered)->last_lsn()); ++i) {
      ASSERT_OK(prefix.Step(**replayed));
    }
    Model loaded;
    ASSERT_OK((*recovered)->Load(loaded));
    EXPECT_TRUE(loaded == prefix.model);
    prefix.ExpectContents(**recovered);
  }
}

TEST_F(JournalTest, ContentIsReadableBeforeAndAfterTheDrain) {
  Create();
  const Extent extent = Write("hello world");
  EXPECT_EQ(Read(extent), "hello world");
  EXPECT_EQ(Read(Clip(extent, 6, 11)), "world");

  ASSERT_OK(journal_->Drain());

  EXPECT_EQ(Read(extent), "hello world");
  EXPECT_EQ(Read(Clip(extent, 6, 11)), "world");
  EXPECT_EQ(Read({0, 3, {}}), std::string(3, '\0'));
  Bytes out(12);
  EXPECT_ERRNO(journal_->Read(extent.content, 0, out), EINVAL);
}

TEST_F(JournalTest, DamagedContentIsAnError) {
  Create();
  const Extent extent = Write(Content(1, 5000));
  ASSERT_OK(journal_->Drain());
  Overwrite("spool/00000001", 100, "x");
  Bytes out(5000);
  EXPECT_ERRNO(journal_->Read(extent.content, 0, out), EIO);
  ASSERT_EQ(::truncate(Path("spool/00000001").c_str(), 10), 0);
  EXPECT_ERRNO(journal_->Read(extent.content, 0, out), EIO);
  ASSERT_EQ(::unlink(Path("spool/00000001").c_str()), 0);
}

TEST_F(JournalTest, ShortLivedContentIsNeverWritten) {
  Create();
  ASSERT_OK(journal_->Append({}));
  const uint64_t before = io_.written;
  const Extent extent = Write(Content(1, 1000));
  Erase(extent);

  ASSERT_OK(journal_->Drain());

  EXPECT_EQ(io_.written, before);
}

TEST_F(JournalTest, PartOfARecordKeepsAllOfIt) {
  Create();
  const Extent extent = Write(Content(1, 1000));
  const Extent left = Clip(extent, 0, 400);
  const Extent right = Clip(extent, 600, 1000);
  Change change;
  change.edits.emplace_back(ExtentEdit{Ino{2}, {extent}, {left, right}});
  const auto lsn = journal_->Append(change);
  ASSERT_OK(lsn);
  journal_->Release(Clip(extent, 400, 600), *lsn);
  Erase(left);
  ASSERT_OK(journal_->Drain());

  EXPECT_EQ(Read(right), Content(1, 1000).substr(600));
  journal_.reset();
  Open();
  EXPECT_EQ(Read(right), Content(1, 1000).substr(600));
}

TEST_F(JournalTest, DeadSpaceIsGivenBackAndLiveContentStays) {
  Create();
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < 400; ++i) {
    extents.push_back(Write(Content(i, 3000), i * 4096));
  }
  ASSERT_OK(journal_->Drain());
  const uint64_t full = Blocks("spool/00000001");
  for (uint64_t i = 0; i < 400; ++i) {
    if (i % 40 != 0) Erase(extents[i]);
  }
  EXPECT_EQ(io_.punched, 0U);

  ASSERT_OK(journal_->Drain());

  EXPECT_GT(io_.punched, uint64_t{900} << 10);
  EXPECT_LT(Blocks("spool/00000001"), full / 4);
  for (uint64_t i = 0; i < 400; i += 40) {
    EXPECT_EQ(Read(extents[i]), Content(i, 3000));
  }
}

TEST_F(JournalTest, ASegmentWithNothingAliveIsDeleted) {
  options_.segment_bytes = 50'000;
  Create();
  std::vector<Extent> extents;
  for (uint64_t i = 0; i < 40; ++i) {
    extents.push_back(Write(Content(i, 3000), i * 4096));
  }
  ASSERT_OK(journal_->Drain());
  ASSERT_GT(Blocks("spool/00000001"), 0U);
  for (uint64_t i = 0; i < 20; ++i) Erase(extents[i]);
  ASSERT_OK(journal_->Drain());

  EXPECT_NE(::access(Path("spool/00000001").c_str(), F_OK), 0);
  for (uint64_t i = 20; i < 40; ++i) {
    EXPECT_EQ(Read(extents[i]), Content(i, 3000));
  }
}

TEST_F(JournalTest, DeadSpaceStaysUntilPowerLossCannotBringTheTablesBack) {
  options_.intake_bytes = Intake::kMinCapacity;
  Create();
  const Extent extent = Write(Content(1, 100'000));
  ASSERT_OK(journal_->Drain());
  Erase(extent);
  // The batch that knows of it is written; the next one, which would make it
  // durable, is not.
  io_.commits_until_error = 1;
  while (journal_->Append({.path = std::string(1000, 'x')})) {
  }
  EXPECT_EQ(io_.punched, 0U);

  io_.commits_until_error = -1;
  ASSERT_OK(journal_->Append({.path = std::string(1000, 'x')}));
  EXPECT_GT(io_.punched, 0U);
}

TEST_F(JournalTest, SegmentsNothingPointsAtGoWhenItIsOpened) {
  Create();
  Write(Content(1, 100));
  const auto own = journal_->NewSegment();
  ASSERT_OK(own);
  ASSERT_EQ(::access(Path("spool/00000002").c_str(), F_OK), 0);
  journal_.reset();
  Open();
  EXPECT_NE(::access(Path("spool/00000002").c_str(), F_OK), 0);
  EXPECT_EQ(::access(Path("spool/00000001").c_str(), F_OK), 0);
}

TEST_F(JournalTest, AnOwnSegmentHasTheFileInPlace) {
  Create();
  const auto own = journal_->NewSegment();
  ASSERT_OK(own);
  const std::string first = Content(1, 70'000);
  const std::string second = Content(2, 100);
  const auto a = journal_->Stage(AsBytes(first), *own, 0);
  const auto b = journal_->Stage(AsBytes(second), *own, 70'000);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(b->ref.segment, *own);
  EXPECT_EQ(b->ref.record_position, 70'000U);
  EXPECT_TRUE(b->inline_bytes.empty());

  const auto again = journal_->Stage(AsBytes(second), *own, 500);
  ASSERT_OK(again);
  EXPECT_NE(again->ref.segment, *own) << "written once, never again";

  const auto content = ReadWholeFile(AT_FDCWD, Path("spool/00000001"));
  ASSERT_OK(content);
  EXPECT_EQ(*content, first + second);
}

TEST_F(JournalTest, ASegmentAnInodeOwnsIsNobodyElses) {
  Create();
  const auto own = journal_->NewSegment();
  ASSERT_OK(own);
  InodeEdit edit{Ino{2}, {}, InodeRecord{}};
  edit.after->attr.own_segment = *own;
  Change change;
  change.edits.emplace_back(edit);
  ASSERT_OK(journal_->Append(change));
  Crash();
  ASSERT_EQ(::unlink(Path("spool/00000001").c_str()), 0);
  Open();
  const Extent other = Write(Content(1, 100));
  EXPECT_NE(other.content.segment, *own);
  EXPECT_NE(*journal_->NewSegment(), *own);
}

TEST_F(JournalTest, AnEmptyOneTakesLittleOfTheDisk) {
  Create();
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  for (const char* name : {"intake", "reserve", "db/data.mdb", "db/lock.mdb"}) {
    struct stat st{};
    ASSERT_EQ(::stat(Path(name).c_str(), &st), 0) << name;
    blocks += Blocks(name);
    bytes += static_cast<uint64_t>(st.st_size);
  }
  EXPECT_LE(blocks, 3U << 20);
  EXPECT_LE(bytes, 4U << 20);
}

TEST_F(JournalTest, TheRingGrowsWhenItIsFull) {
  options_.first_intake_bytes = Intake::kMinCapacity;
  options_.intake_bytes = 256 << 10;
  Create();
  const uint64_t reserve = Blocks("reserve");
  History history(9);
  Steps(history, 20);
  EXPECT_EQ(Size("intake"), 4096 + options_.first_intake_bytes);
  Steps(history, 180);
  EXPECT_EQ(Size("intake"), 4096 + options_.intake_bytes);
  EXPECT_GT(Blocks("reserve"), reserve);
  ExpectHas(history);

  for (int round = 0; round < 3; ++round) {
    Crash();
    Open();
    ExpectHas(history);
    Steps(history, 300);
  }
  EXPECT_EQ(Size("intake"), 4096 + options_.intake_bytes);
}

TEST_F(JournalTest, TheRingGrowsForALargeRecord) {
  options_.first_intake_bytes = Intake::kMinCapacity;
  options_.intake_bytes = 256 << 10;
  Create();
  Change change;
  change.edits.emplace_back(
      XattrEdit{Ino{2}, "name", {}, std::string(60'000, 'x')});
  ASSERT_OK(journal_->Append(change));
  EXPECT_EQ(Size("intake"), 4096 + options_.intake_bytes);
  Crash();
  Open();
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_EQ(loaded.xattrs.size(), 1U);
}

TEST_F(JournalTest, ARingThatCannotGrowStaysAsItIs) {
  options_.first_intake_bytes = Intake::kMinCapacity;
  options_.intake_bytes = 256 << 10;
  Create();
  const uint64_t reserve = Size("reserve");
  io_.allocate_error = ENOSPC;
  History history(10);
  Steps(history, 300);
  EXPECT_EQ(Size("intake"), 4096 + options_.first_intake_bytes);
  EXPECT_EQ(Size("reserve"), reserve);
  Crash();
  io_.allocate_error = 0;
  Open();
  ExpectHas(history);
}

// A crash between the two leaves blocks that belong to no place of the ring.
TEST_F(JournalTest, BlocksBehindTheRingAreNoDamage) {
  options_.first_intake_bytes = Intake::kMinCapacity;
  options_.intake_bytes = Intake::kMinCapacity;
  Create();
  History history(11);
  Steps(history, 30);
  Crash();
  ASSERT_EQ(::truncate(Path("intake").c_str(), 256 << 10), 0);
  options_.intake_bytes = 512 << 10;
  Open();
  Steps(history, 300);
  EXPECT_EQ(Size("intake"), 4096 + options_.intake_bytes);
  ExpectHas(history);
}

TEST_F(JournalTest, AFullDiskIsAnErrorOfWritesAndNothingIsLost) {
  options_.intake_bytes = Intake::kMinCapacity;
  Create();
  History history(6);
  Steps(history, 100, 1000);
  io_.write_error = ENOSPC;
  EXPECT_ERRNO(journal_->Stage(AsBytes(Content(1, 100'000))), ENOSPC);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    const auto lsn = history.Step(*journal_, 1000);
    if (lsn) continue;
    ASSERT_EQ(lsn.error().code, ENOSPC);
    ++refused;
  }
  EXPECT_GT(refused, 100);
  EXPECT_ERRNO(journal_->Drain(), ENOSPC);

  io_.write_error = 0;
  Steps(history, 500, 1000);
  ExpectHas(history);
  journal_.reset();
  Open();
  ExpectHas(history);
}

TEST_F(JournalTest, DeletingWorksWhileTheDiskIsFull) {
  Create();
  const Extent extent = Write(Content(1, 100));
  io_.write_error = ENOSPC;
  ASSERT_FALSE(journal_->Drain());
  io_.commit_error = ENOSPC;
  Erase(extent);
  io_.write_error = 0;
  io_.commit_error = 0;
  EXPECT_OK(journal_->Drain());
}

TEST_F(JournalTest, TablesThatCannotBeWrittenAreTriedAgain) {
  Create();
  History history(7);
  Steps(history, 50);
  io_.commit_error = ENOSPC;
  EXPECT_ERRNO(journal_->Drain(), ENOSPC);
  io_.commit_error = 0;
  io_.sync_error = EIO;
  EXPECT_ERRNO(journal_->Drain(), EIO);
  EXPECT_ERRNO(journal_->Sync(), EIO);
  io_.sync_error = 0;
  EXPECT_OK(journal_->Sync());
  EXPECT_OK(journal_->Drain());
  ExpectHas(history);
}

TEST_F(JournalTest, ContentThatAFailedSyncLostIsNeverCalledDurable) {
  Create();
  const Extent first = Write(Content(1, 100));
  const Extent large = Write(Content(2, kInlineContentMax + 1), 1000);
  Overwrite("spool/00000001", large.content.record_position, "lost");
  io_.sync_error = EIO;
  EXPECT_ERRNO(journal_->Sync(), EIO);
  io_.sync_error = 0;

  EXPECT_ERRNO(journal_->Sync(), EIO);
  EXPECT_ERRNO(journal_->Drain(), EIO);

  Crash();
  Open();
  EXPECT_EQ(journal_->last_lsn(), Lsn{1});
  EXPECT_EQ(Read(first), Content(1, 100));
  EXPECT_OK(journal_->Sync());
}

TEST_F(JournalTest, WhatAFailedSyncLeftInMemoryIsWrittenAgain) {
  Create();
  const Extent large = Write(Content(2, kInlineContentMax + 1), 1000);
  io_.sync_error = EIO;
  EXPECT_ERRNO(journal_->Sync(), EIO);
  const uint64_t before = io_.written;
  io_.write_error = EIO;
  EXPECT_ERRNO(journal_->Sync(), EIO);
  io_.write_error = 0;
  io_.sync_error = 0;

  ASSERT_OK(journal_->Sync());

  EXPECT_GT(io_.written, before + kInlineContentMax);
  EXPECT_EQ(Read(large), Content(2, kInlineContentMax + 1));
}

TEST_F(JournalTest, AChangeLargerThanTheIntakeGoesStraightToTheTables) {
  options_.intake_bytes = Intake::kMinCapacity;
  Create();
  Write(Content(1, 100), uint64_t{1} << 40);
  const std::string content = Content(2, 5000);
  auto staged = journal_->Stage(AsBytes(content));
  ASSERT_OK(staged);
  const Extent extent{0, 5000, staged->ref};
  ExtentEdit edit{Ino{2}, {}, {extent}};
  for (uint64_t i = 1; i < 5000; ++i) edit.after.push_back({i * 8192, 1, {}});
  Change change;
  change.edits.emplace_back(edit);

  const auto lsn = journal_->Append(change, &*staged);

  ASSERT_OK(lsn);
  EXPECT_EQ(*lsn, Lsn{2});
  EXPECT_EQ(Read(extent), content);
  Write(Content(3, 100), uint64_t{1} << 41);
  Crash();
  Open();
  EXPECT_EQ(journal_->last_lsn(), Lsn{3});
  EXPECT_EQ(Read(extent), content);
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_EQ(loaded.extents.size(), 5002U);
}

TEST_F(JournalTest, TheMapGrowsWhenItIsFull) {
  options_.map_bytes = 1;
  Create();
  Model expected;
  for (int i = 0; i < 3000; ++i) {
    Change change;
    change.edits.emplace_back(
        XattrEdit{Ino{2}, "user." + std::to_string(i), {}, Content(1, 1500)});
    ASSERT_OK(journal_->Append(change));
    Apply(change, expected);
  }
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_TRUE(loaded == expected);
  journal_.reset();
  Open();
  Model again;
  ASSERT_OK(journal_->Load(again));
  EXPECT_TRUE(again == expected);
}

TEST_F(JournalTest, TheLogIsReadInOrderFromAnywhere) {
  Create();
  for (int i = 1; i <= 2500; ++i) {
    ASSERT_OK(journal_->Append({.op = Op::kMkdir, .path = std::to_string(i)}));
  }
  uint64_t next = 500;
  ASSERT_OK(journal_->ReadLog(Lsn{500}, [&](const LogEntry& entry) {
    EXPECT_EQ(entry.lsn, Lsn{next});
    EXPECT_EQ(entry.change.path, std::to_string(next));
    return next++ < 2400;
  }));
  EXPECT_EQ(next, 2401U);
  ASSERT_OK(journal_->ReadLog(Lsn{2501}, [](const LogEntry&) {
    ADD_FAILURE();
    return true;
  }));
}

TEST_F(JournalTest, RewritesOfAFileAreOneRowOfTheLog) {
  options_.first_intake_bytes = options_.intake_bytes;  // one batch
  Create();
  Model expected;
  Attr attr{.size = 1};
  std::optional<Extent> old;
  const auto rewrite = [&](uint32_t pid, int times) {
    for (int i = 0; i < times; ++i) {
      // What is staged lies there until it is appended.
      const std::string byte = Content(uint64_t(i), 1);
      const auto staged = journal_->Stage(AsBytes(byte));
      ASSERT_OK(staged);
      Change change{.op = Op::kWrite,
                    .time = {.sec = i, .nsec = 0},
                    .pid = pid,
                    .path = "f",
                    .length = 1};
      AttrEdit times_set{Ino{2}, attr, attr};
      times_set.after.mtime.sec = ++attr.mtime.sec;
      ExtentEdit content{Ino{2}, {}, {{0, 1, staged->ref}}};
      if (old) content.before.push_back(*old);
      change.edits = {times_set, content};
      const auto lsn = journal_->Append(change, &*staged);
      ASSERT_OK(lsn);
      if (old) journal_->Release(*old, *lsn);
      old = content.after.front();
      Apply(change, expected);
    }
  };
  Change made{.op = Op::kCreate, .path = "f"};
  made.edits.emplace_back(InodeEdit{Ino{2}, {}, InodeRecord{.attr = attr}});
  ASSERT_OK(journal_->Append(made));
  Apply(made, expected);
  rewrite(1, 1000);
  ASSERT_OK(journal_->Append({.op = Op::kSavepoint, .path = "here"}));
  const Model then = expected;
  rewrite(1, 500);
  rewrite(2, 500);
  ASSERT_OK(journal_->Drain());
  std::vector<std::pair<Op, uint64_t>> rows;
  ASSERT_OK(journal_->ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    rows.emplace_back(entry.change.op, entry.count);
    return true;
  }));
  EXPECT_EQ(rows, (std::vector<std::pair<Op, uint64_t>>{{Op::kCreate, 1},
                                                        {Op::kWrite, 1000},
                                                        {Op::kSavepoint, 1},
                                                        {Op::kWrite, 500},
                                                        {Op::kWrite, 500}}));
  CheckReport report;
  ASSERT_OK(CheckJournal(dir_.Open().get(), Findings(report, "txn/1")));
  EXPECT_TRUE(report.problems.empty());
  journal_.reset();
  Open();
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_TRUE(loaded == expected);
  const auto rewind =
      journal_->Rollback({.op = Op::kRollback, .path = "here", .offset = 1002});
  ASSERT_OK(rewind);
  EXPECT_EQ(rewind->changes, 1000U);
  Model back;
  ASSERT_OK(journal_->Load(back));
  EXPECT_TRUE(back == then);
}

TEST_F(JournalTest, ALongPathIsCutInTheLog) {
  Create();
  const std::string path(5000, 'd');
  ASSERT_OK(
      journal_->Append({.op = Op::kRename, .path = path, .new_path = "e"}));
  ASSERT_OK(journal_->ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    EXPECT_EQ(entry.change.path, path.substr(0, 4096));
    EXPECT_EQ(entry.change.new_path, "e");
    return true;
  }));
}

TEST_F(JournalTest, WhatTheTablesCannotTakeIsLoadedFromTheIntake) {
  Create();
  History history(8);
  Steps(history, 50);
  io_.write_error = ENOSPC;
  io_.commit_error = ENOSPC;
  EXPECT_ERRNO(journal_->Drain(), ENOSPC);
  ExpectHas(history);
  io_.write_error = 0;
  io_.commit_error = 0;
  ExpectHas(history);
}

TEST_F(JournalTest, WhatIsMappedHasItsBlocks) {
  Create();
  for (const char* name : {"db/lock.mdb", "intake"}) {
    struct stat st{};
    ASSERT_EQ(::stat(Path(name).c_str(), &st), 0);
    EXPECT_GE(Blocks(name), static_cast<uint64_t>(st.st_size)) << name;
  }
  // Nor does a store that was copied without its blocks lack them.
  journal_.reset();
  ASSERT_EQ(::truncate(Path("db/lock.mdb").c_str(), 0), 0);
  ASSERT_EQ(::truncate(Path("db/lock.mdb").c_str(), 8192), 0);
  Open();
  EXPECT_GE(Blocks("db/lock.mdb"), 8192U);
}

TEST_F(JournalTest, FactsSurvive) {
  Create();
  EXPECT_ERRNO(journal_->GetMeta("plan"), ENOENT);
  ASSERT_OK(journal_->PutMeta("plan", Content(1, 100'000)));
  ASSERT_OK(journal_->PutMeta("state", "active"));
  ASSERT_OK(journal_->PutMeta("state", "committing"));
  Crash();
  Open();
  EXPECT_EQ(*journal_->GetMeta("plan"), Content(1, 100'000));
  EXPECT_EQ(*journal_->GetMeta("state"), "committing");
}

TEST_F(JournalTest, ANameTheTablesCannotHoldIsRefused) {
  Create();
  Change change;
  change.edits.emplace_back(DentryEdit{
      Ino{1}, std::string(255, 'x'), {}, {DentryKind::kWhiteout, kNoIno}});
  EXPECT_OK(journal_->Append(change));
  change.edits.emplace_back(DentryEdit{Ino{1}, std::string(256, 'x'), {}, {}});
  EXPECT_ERRNO(journal_->Append(change), ENAMETOOLONG);
  EXPECT_OK(journal_->Drain());
}

TEST_F(JournalTest, ASmallWriteTakesLittleSpace) {
  Create();
  const uint64_t before = *journal_->StoreBytes();
  Write(Content(1, 4096));
  ASSERT_OK(journal_->Drain());
  EXPECT_LT(*journal_->StoreBytes() - before, uint64_t{32} << 10);
}

/// Bytes of mapped tables that are in the memory of this process.
uint64_t TablesInMemory() {
  std::ifstream maps("/proc/self/smaps");
  uint64_t kilobytes = 0;
  std::string line;
  bool is_tables = false;
  while (std::getline(maps, line)) {
    if (line.ends_with("/data.mdb")) is_tables = true;
    if (!is_tables || !line.starts_with("Rss:")) continue;
    kilobytes += std::stoul(line.substr(4));
    is_tables = false;
  }
  return kilobytes << 10;
}

TEST_F(JournalTest, PagesOfTheTablesDoNotStayInMemory) {
  Create();
  for (uint64_t i = 0; i < 5000; ++i) Write("x", i * 2);
  ASSERT_OK(journal_->Drain());
  ASSERT_GT(TablesInMemory(), uint64_t{256} << 10);
  Model loaded;
  ASSERT_OK(journal_->Load(loaded));
  EXPECT_EQ(TablesInMemory(), 0U);
  ASSERT_OK(journal_->Load(loaded));
}

TEST_F(JournalTest, ANewerVersionIsRefused) {
  Create();
  journal_.reset();
  {
    const UniqueFd dir = dir_.Open();
    auto db = Db::Open(dir.get(), 1 << 20, io_);
    ASSERT_OK(db);
    ASSERT_OK((*db)->Write([](Tables& tables) -> Status {
      tables.PutFormat(kTablesVersion + 1);
      return {};
    }));
  }
  EXPECT_ERRNO(Journal::Open(dir_.Open(), options_), EPROTONOSUPPORT);
}

TEST_F(JournalTest, DamagedTablesAreRefusedWithARemedy) {
  Create();
  Write(Content(1, 100));
  journal_.reset();
  struct stat st{};
  ASSERT_EQ(::stat(Path("db/data.mdb").c_str(), &st), 0);
  for (const off_t size :
       {st.st_size / 8, off_t{8192}, off_t{4096}, off_t{9}, off_t{0}}) {
    ASSERT_EQ(::truncate(Path("db/data.mdb").c_str(), size), 0);
    auto opened = Journal::Open(dir_.Open(), options_);
    EXPECT_ERRNO(opened, EBADMSG);
    EXPECT_FALSE(opened.error().hint.empty());
  }
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("db/data.mdb"), Content(1, 100'000)));
  EXPECT_ERRNO(Journal::Open(dir_.Open(), options_), EBADMSG);
  ASSERT_EQ(::unlink(Path("db/data.mdb").c_str()), 0);
  EXPECT_ERRNO(Journal::Open(dir_.Open(), options_), EBADMSG);
}

TEST_F(JournalTest, AMissingIntakeIsRefused) {
  Create();
  journal_.reset();
  ASSERT_EQ(::unlink(Path("intake").c_str()), 0);
  EXPECT_ERRNO(Journal::Open(dir_.Open(), options_), EBADMSG);
}

TEST_F(JournalTest, DrainsInTheBackgroundWhileAppendsGoOn) {
  options_.background_drain = true;
  options_.intake_bytes = Intake::kMinCapacity;
  options_.drain_interval_ms = 1;
  Create();
  History history(8);
  std::atomic<bool> done = false;
  std::vector<std::thread> syncers;
  for (int i = 0; i < 2; ++i) {
    syncers.emplace_back([&] {
      while (!done) EXPECT_OK(journal_->Sync());
    });
  }
  for (int i = 0; i < 3000; ++i) {
    ASSERT_OK(history.Step(*journal_, 5000));
    if (i % 500 == 0) history.ExpectContents(*journal_);
  }
  done = true;
  for (std::thread& syncer : syncers) syncer.join();
  ExpectHas(history);
  Crash();
  Open();
  ExpectHas(history);
}

}  // namespace
}  // namespace txfs
