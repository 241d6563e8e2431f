#include "journal/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/journal/fixture.h"

namespace txfs {
namespace {

constexpr Timestamp kCreated{1'700'000'000, 123'000'000};

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.background_drain = false;
    options_.map_bytes = 1 << 20;
    auto store = Open();
    ASSERT_OK(store);
    store_ = std::move(*store);
  }

  Result<std::unique_ptr<Store>> Open() {
    return Store::Open(dir_.Open(), dir_.path(), "/work\nspace");
  }
  [[nodiscard]] std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  [[nodiscard]] bool Exists(const std::string& name) const {
    return ::access(Path(name).c_str(), F_OK) == 0;
  }

  TempDir dir_;
  JournalOptions options_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, MakesALayoutThatHidesFromOthersAndFromGit) {
  struct stat st{};
  ASSERT_EQ(::stat(dir_.path().c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 07777, 0700U);
  EXPECT_EQ(*ReadWholeFile(AT_FDCWD, Path(".gitignore")), "*\n");
  EXPECT_EQ(*ReadWholeFile(AT_FDCWD, Path("workspace")), "/work\nspace");
  EXPECT_EQ(*ReadWholeFile(AT_FDCWD, Path("FORMAT")), "txfs store 1\n");
  EXPECT_OK(Open());
}

TEST_F(StoreTest, FinishesALayoutThatWasInterrupted) {
  ASSERT_EQ(::unlink(Path("FORMAT").c_str()), 0);
  EXPECT_OK(Open());
  EXPECT_TRUE(Exists("FORMAT"));
}

TEST_F(StoreTest, RefusesADirectoryOfSomethingElse) {
  const TempDir other;
  ASSERT_OK(ReplaceFile(AT_FDCWD, other.path() + "/precious", "x"));
  EXPECT_ERRNO(Store::Open(other.Open(), other.path(), "/w"), ENOTEMPTY);
}

TEST_F(StoreTest, RefusesANewerOrDamagedFormat) {
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("FORMAT"), "txfs store 2\n"));
  EXPECT_ERRNO(Open(), EPROTONOSUPPORT);
  for (const char* text : {"", "x", "txfs store ", "txfs store x"}) {
    ASSERT_OK(ReplaceFile(AT_FDCWD, Path("FORMAT"), text));
    EXPECT_ERRNO(Open(), EBADMSG);
  }
}

TEST_F(StoreTest, BeginsAndResumesATransaction) {
  std::string id;
  {
    auto begun = store_->Begin("first", kCreated, options_);
    ASSERT_OK(begun);
    id = begun->id;
    EXPECT_EQ(id, "018bcfe5687b");
    ASSERT_OK(begun->journal->Append({.op = Op::kMkdir, .path = "a"}));
  }
  EXPECT_EQ(*store_->OpenIds(), std::vector{id});
  auto resumed = store_->Resume(id, options_);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->journal->last_lsn(), Lsn{1});
}

TEST_F(StoreTest, ATransactionBeginsWithWhatWasMadeAhead) {
  ASSERT_OK(store_->MakeBlank(options_));
  ASSERT_OK(store_->MakeBlank(options_));
  struct stat ahead{};
  ASSERT_EQ(::stat(Path("blank").c_str(), &ahead), 0);
  std::string id;
  {
    auto begun = store_->Begin("first", kCreated, options_);
    ASSERT_OK(begun);
    id = begun->id;
    struct stat st{};
    ASSERT_EQ(::stat(Path("txn/" + id).c_str(), &st), 0);
    EXPECT_EQ(st.st_ino, ahead.st_ino);
    EXPECT_FALSE(Exists("blank"));
    EXPECT_EQ(begun->journal->last_lsn(), kNoLsn);
    ASSERT_OK(begun->journal->Append({.op = Op::kMkdir, .path = "a"}));
  }
  auto resumed = store_->Resume(id, options_);
  ASSERT_OK(resumed);
  EXPECT_EQ(resumed->journal->last_lsn(), Lsn{1});
  const auto list = store_->List();
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 1U);
  EXPECT_EQ(list->front().name, "first");
}

TEST_F(StoreTest, WhatWasMadeAheadIsNoTransactionAndCanBeFreed) {
  ASSERT_OK(store_->MakeBlank(options_));
  EXPECT_EQ(store_->List()->size(), 0U);
  auto other = store_->Begin("", kCreated, options_);
  ASSERT_OK(other);
  ASSERT_OK(store_->MakeBlank(options_));
  ASSERT_OK(store_->EmptyTrash());
  ASSERT_TRUE(Exists("blank"));
  auto freed = store_->DropBlank();
  ASSERT_OK(freed);
  EXPECT_GT(*freed, 0U);
  EXPECT_FALSE(Exists("blank"));
  EXPECT_EQ(*store_->DropBlank(), 0U);
}

/// As one leaves it who dies half-way.
TEST_F(StoreTest, WhatWasHalfMadeAheadIsMadeAgain) {
  ASSERT_OK(MakeDirectoryAt(AT_FDCWD, Path("blank.part"), 0700));
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("blank.part/intake"), "x"));
  ASSERT_OK(store_->MakeBlank(options_));
  EXPECT_FALSE(Exists("blank.part"));
  EXPECT_OK(store_->Begin("", kCreated, options_));
}

TEST_F(StoreTest, ATransactionBeginsAlsoWhenWhatWasMadeAheadIsUnfit) {
  for (const char* file : {"db/data.mdb", "intake", "lock"}) {
    ASSERT_OK(store_->MakeBlank(options_));
    ASSERT_OK(RemoveTree(AT_FDCWD, Path("blank/") + file));
    ASSERT_OK(MakeDirectoryAt(AT_FDCWD, Path("blank/") + file, 0700));
    const std::string name = std::string(file).substr(0, 2);
    auto begun = store_->Begin(name, kCreated, options_);
    ASSERT_OK(begun);
    EXPECT_OK(begun->journal->Append({.op = Op::kMkdir, .path = "a"}));
    EXPECT_OK(begun->journal->Drain());
  }
  // Its ring is too small for these options.
  ASSERT_OK(store_->MakeBlank(options_));
  options_.first_intake_bytes = options_.intake_bytes;
  auto begun = store_->Begin("larger", kCreated, options_);
  ASSERT_OK(begun);
  struct stat st{};
  ASSERT_EQ(::stat(Path("txn/" + begun->id + "/intake").c_str(), &st), 0);
  EXPECT_GT(static_cast<uint64_t>(st.st_size), options_.intake_bytes);
}

TEST_F(StoreTest, ATransactionIsHeldByOneAtATime) {
  auto begun = store_->Begin("", kCreated, options_);
  ASSERT_OK(begun);
  const auto other = store_->Resume(begun->id, options_);
  EXPECT_ERRNO(other, EWOULDBLOCK);
  EXPECT_EQ(other.error().kind, ErrorKind::kBusy);
  EXPECT_NE(other.error().message.find(std::to_string(::getpid())),
            std::string::npos);
}

TEST_F(StoreTest, ANameIsOpenOnlyOnce) {
  auto first = store_->Begin("a", kCreated, options_);
  ASSERT_OK(first);
  EXPECT_ERRNO(store_->Begin("a", kCreated, options_), EEXIST);
  auto second = store_->Begin("b", kCreated, options_);
  ASSERT_OK(second);
  EXPECT_GT(second->id, first->id);
}

TEST_F(StoreTest, AReservedIdIsNobodyElses) {
  const auto reserved = store_->ReserveId(kCreated);
  ASSERT_OK(reserved);
  // As by another process, before what it is reserved for is in the history.
  const auto other = Open();
  ASSERT_OK(other);
  const auto begun = (*other)->Begin("a", kCreated, options_);
  ASSERT_OK(begun);
  EXPECT_NE(begun->id, *reserved);
  EXPECT_OK((*other)->EmptyTrash());
  EXPECT_EQ(*store_->OpenIds(), std::vector{begun->id});
}

TEST_F(StoreTest, AnIdIsReservedThatIsNotInUse) {
  const auto begun = store_->Begin("a", kCreated, options_);
  ASSERT_OK(begun);
  const auto first = store_->ReserveId(kCreated);
  ASSERT_OK(first);
  EXPECT_NE(*first, begun->id);
  ASSERT_OK(store_->history().Write({.id = *first, .created = kCreated}));
  const auto second = store_->ReserveId(kCreated);
  ASSERT_OK(second);
  EXPECT_NE(*second, *first);
  EXPECT_NE(*second, begun->id);
}

/// Their number has no limit, and each end of a transaction looks for plans.
TEST_F(StoreTest, RecordsWithoutAPlanAreNotReadForPlans) {
  const TransactionHistory& history = store_->history();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(*store_->ReserveId(kCreated));
    ASSERT_OK(history.Write({.id = ids[i],
                             .state = TransactionState::kDiscarded,
                             .created = kCreated,
                             .ended = {kCreated.sec + 9 - i, 0}}));
  }
  ASSERT_OK(history.WriteImage(ids[1], "image"));
  ASSERT_OK(
      ReplaceFile(AT_FDCWD, Path("history/" + ids[2] + ".plan.new"), "plan"));
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("history/" + ids[0]), "damaged"));
  EXPECT_FALSE(history.ReadAll());
  const auto kept = history.ReadWithPlans();
  ASSERT_OK(kept);
  ASSERT_EQ(kept->size(), 2U);
  EXPECT_EQ((*kept)[0].id, ids[2]);
  EXPECT_EQ((*kept)[1].id, ids[1]);
  // One that has lost its record is an orphan.
  ASSERT_OK(history.WriteImage("0000000000aa", "image"));
  EXPECT_EQ(history.ReadWithPlans()->size(), 2U);
}

TEST_F(StoreTest, AnEndedTransactionIsHistory) {
  auto begun = store_->Begin("a", kCreated, options_);
  ASSERT_OK(begun);
  const std::string id = begun->id;
  const TransactionSummary ended{
      .id = id,
      .name = "a",
      .state = TransactionState::kCommitted,
      .created = kCreated,
      .ended = {kCreated.sec + 5, 0},
      .message = "done",
      .changes = 3,
  };

  ASSERT_OK(EndTransaction(*store_, std::move(*begun), ended));

  EXPECT_TRUE(store_->OpenIds()->empty());
  EXPECT_ERRNO(store_->Resume(id, options_), ENOENT);
  auto next = store_->Begin("a", kCreated, options_);
  ASSERT_OK(next);
  const auto list = store_->List();
  ASSERT_OK(list);
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ((*list)[0].message, "done");
  EXPECT_EQ((*list)[0].changes, 3U);
  EXPECT_EQ((*list)[0].state, TransactionState::kCommitted);
  EXPECT_EQ((*list)[1].id, next->id);
  EXPECT_EQ((*list)[1].state, TransactionState::kActive);

  EXPECT_TRUE(Exists("trash/" + id));
  ASSERT_OK(store_->EmptyTrash());
  EXPECT_FALSE(Exists("trash/" + id));
  EXPECT_OK(store_->EmptyTrash());
}

TEST_F(StoreTest, TheSummaryOfAnOpenTransactionCanChange) {
  auto begun = store_->Begin("a", kCreated, options_);
  ASSERT_OK(begun);
  TransactionSummary summary = store_->List()->at(0);
  summary.state = TransactionState::kCommitting;
  ASSERT_OK(store_->UpdateSummary(summary));
  EXPECT_EQ(store_->List()->at(0).state, TransactionState::kCommitting);
}

TEST_F(StoreTest, ADirectoryThatHasHistoryHasEnded) {
  std::string id;
  {
    auto begun = store_->Begin("a", kCreated, options_);
    ASSERT_OK(begun);
    id = begun->id;
    TransactionSummary summary = store_->List()->at(0);
    summary.ended = kCreated;
    summary.state = TransactionState::kDiscarded;
    ASSERT_OK(ReplaceFile(store_->dir(), "history/" + id,
                          AsText(EncodeSummary(summary))));
  }
  EXPECT_TRUE(store_->OpenIds()->empty());
  EXPECT_EQ(store_->List()->size(), 1U);
  ASSERT_OK(store_->EmptyTrash());
  EXPECT_FALSE(Exists("txn/" + id));
}

TEST_F(StoreTest, WhatWasNeverBegunIsThrownAway) {
  ASSERT_OK(MakeDirectoryAt(store_->dir(), "txn/018bcfe5687b.new", 0700));
  ASSERT_OK(MakeDirectoryAt(store_->dir(), "txn/018bcfe5687b.new/db", 0700));
  EXPECT_TRUE(store_->OpenIds()->empty());
  auto begun = store_->Begin("", kCreated, options_);
  ASSERT_OK(begun);
  EXPECT_FALSE(Exists("txn/018bcfe5687b.new"));
}

TEST_F(StoreTest, AFullDiskLeavesNothingHalfBegun) {
  FaultyIo io;
  options_.io = &io;
  io.write_error = ENOSPC;
  const auto begun = store_->Begin("", kCreated, options_);
  EXPECT_ERRNO(begun, ENOSPC);
  EXPECT_FALSE(begun.error().hint.empty());
  EXPECT_TRUE(store_->OpenIds()->empty());
  io.write_error = 0;
  EXPECT_OK(store_->Begin("", kCreated, options_));
}

TEST_F(StoreTest, KeepsTheDaemonRecord) {
  auto begun = store_->Begin("", kCreated, options_);
  ASSERT_OK(begun);
  EXPECT_ERRNO(store_->ReadDaemonRecord(begun->id), ENOENT);
  ASSERT_OK(store_->WriteDaemonRecord(begun->id, "{}"));
  EXPECT_EQ(*store_->ReadDaemonRecord(begun->id), "{}");
  ASSERT_OK(store_->RemoveDaemonRecord(begun->id));
  EXPECT_ERRNO(store_->ReadDaemonRecord(begun->id), ENOENT);
}

TEST_F(StoreTest, AnIdIsNoPath) {
  for (const char* id : {"", "..", "../../etc", "018BCFE5687B", "xyz"}) {
    EXPECT_ERRNO(store_->TransactionDir(id), ENOENT);
    EXPECT_ERRNO(store_->ReadDaemonRecord(id), ENOENT);
    EXPECT_ERRNO(store_->Resume(id, options_), ENOENT);
  }
}

TEST_F(StoreTest, DamagedSummariesAreErrors) {
  Bytes bytes = EncodeSummary({.id = "018bcfe5687b", .name = "n"});
  ASSERT_OK(DecodeSummary(bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    Bytes damaged = bytes;
    damaged[i] ^= std::byte{0x40};
    EXPECT_FALSE(DecodeSummary(damaged));
    EXPECT_FALSE(DecodeSummary(ByteSpan(bytes).first(i)));
  }
}

TEST(FileLockTest, IsFreeAgainWhenItsHolderIsGone) {
  const TempDir dir;
  const UniqueFd fd = dir.Open();
  {
    const auto lock = FileLock::Take(fd.get(), "lock", 0);
    ASSERT_OK(lock);
    EXPECT_ERRNO(FileLock::Take(fd.get(), "lock", 0), EWOULDBLOCK);
    EXPECT_ERRNO(FileLock::Take(fd.get(), "lock", 20), EWOULDBLOCK);
  }
  EXPECT_OK(FileLock::Take(fd.get(), "lock", 0));
}

TEST(StateNameTest, LeadsBack) {
  for (const auto state :
       {TransactionState::kActive, TransactionState::kCommitting,
        TransactionState::kCommitted, TransactionState::kDiscarded}) {
    EXPECT_EQ(StateFromName(StateName(state)), state);
  }
  EXPECT_FALSE(StateFromName("unknown"));
}

TransactionSummary Ended(const std::string& id, const std::string& name,
                         TransactionKind kind = TransactionKind::kWhole) {
  return {.id = id,
          .name = name,
          .state = TransactionState::kCommitted,
          .kind = kind};
}

TEST(FindTransactionTest, TakesTheNewestOfANameOrTheBeginningOfOneId) {
  const TransactionSummary open{.id = "01ac", .name = "a"};
  const std::vector<TransactionSummary> list = {
      Ended("01aa", "a"), Ended("01ab", "a"), open,
      Ended("01ad", "a", TransactionKind::kUndo), Ended("02", "")};
  EXPECT_EQ(FindTransaction(list, "a")->id, "01ab");
  EXPECT_EQ(FindTransaction({open}, "a")->id, "01ac");
  EXPECT_EQ(FindTransaction(list, "01ad")->id, "01ad");
  EXPECT_EQ(FindTransaction(list, "02")->id, "02");
  const auto several = FindTransaction(list, "01");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().kind, ErrorKind::kUsage);
  EXPECT_NE(several.error().message.find("01aa, 01ab"), std::string::npos);
  EXPECT_FALSE(FindTransaction(list, "b"));
  EXPECT_FALSE(FindTransaction(list, ""));
}

}  // namespace
}  // namespace txfs
