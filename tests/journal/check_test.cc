#include "journal/check.h"

#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "journal/check_store.h"
#include "journal/db.h"
#include "journal/rows.h"
#include "journal/spool.h"
#include "journal/store.h"
#include "tests/journal/fixture.h"

namespace txfs {
namespace {

using Kinds = std::set<std::string>;

Kinds KindsOf(const CheckReport& report) {
  Kinds kinds;
  for (const Problem& problem : report.problems) kinds.insert(problem.kind);
  return kinds;
}

std::string TextOf(const CheckReport& report) {
  std::string text;
  for (const Problem& problem : report.problems) {
    text += problem.kind + ": " + problem.where + ": " + problem.message + "\n";
  }
  return text;
}

/// A journal with a history, closed, and what a check says about it.
class JournalCheckTest : public ::testing::Test {
 protected:
  JournalCheckTest() {
    options_.background_drain = false;
    options_.map_bytes = 64 << 20;
    options_.intake_bytes = 256 << 10;
    options_.io = &io_;
  }

  void Create() {
    auto journal = Journal::Create(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
  }
  void Steps(int count, size_t max_content = 3000) {
    for (int i = 0; i < count; ++i) {
      ASSERT_OK(history_.Step(*journal_, max_content));
    }
  }
  /// Leaves what was not drained in the intake.
  void Crash() {
    io_.commit_error = EIO;
    journal_.reset();
    io_.commit_error = 0;
  }
  /// 200 changes in the tables and the journal closed.
  void MakeClosed() {
    Create();
    Steps(200, 40'000);
    journal_.reset();
  }
  CheckReport Check() {
    CheckReport report;
    const auto content =
        CheckJournal(dir_.Open().get(), Findings(report, "txn/1"));
    EXPECT_OK(content);
    FinishReport(report);
    return report;
  }
  void ExpectSound() { EXPECT_EQ(TextOf(Check()), ""); }
  void ExpectKinds(const Kinds& kinds) {
    const CheckReport report = Check();
    EXPECT_EQ(KindsOf(report), kinds) << TextOf(report);
  }
  void ExpectHas(const std::string& kind) {
    const CheckReport report = Check();
    EXPECT_TRUE(KindsOf(report).contains(kind)) << TextOf(report);
  }
  /// Changes the tables as no journal does.
  void Edit(const std::function<void(Tables&)>& edit) {
    auto db = Db::Open(dir_.Open().get(), options_.map_bytes, io_);
    ASSERT_OK(db);
    ASSERT_OK((*db)->Write([&](Tables& tables) -> Status {
      edit(tables);
      return {};
    }));
  }
  /// Puts any bytes into a table; an empty value deletes the row.
  void PutRaw(const char* table, ByteSpan key, ByteSpan value) {
    MDB_env* env = nullptr;
    ASSERT_EQ(mdb_env_create(&env), 0);
    ASSERT_EQ(mdb_env_set_maxdbs(env, 11), 0);
    ASSERT_EQ(mdb_env_open(env, Path("db").c_str(), 0, 0600), 0);
    MDB_txn* txn = nullptr;
    ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    MDB_dbi dbi = 0;
    ASSERT_EQ(mdb_dbi_open(txn, table, MDB_CREATE, &dbi), 0);
    MDB_val k{key.size(), const_cast<std::byte*>(key.data())};
    MDB_val v{value.size(), const_cast<std::byte*>(value.data())};
    if (value.empty()) {
      ASSERT_EQ(mdb_del(txn, dbi, &k, nullptr), 0);
    } else {
      ASSERT_EQ(mdb_put(txn, dbi, &k, &v, 0), 0);
    }
    ASSERT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
  }
  static Bytes Key(uint64_t number) {
    Bytes key;
    AppendKey(key, number);
    return key;
  }
  [[nodiscard]] std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  void Overwrite(const std::string& name, uint64_t at, std::string_view bytes) {
    const auto fd = OpenAt(AT_FDCWD, Path(name), O_RDWR);
    ASSERT_OK(fd);
    ASSERT_OK(WriteFully(fd->get(), at, AsBytes(bytes)));
  }
  [[nodiscard]] const Extent& SomeExtent() const {
    return history_.model.extents.begin()->second;
  }
  [[nodiscard]] Ino SomeInode() const {
    return history_.model.extents.begin()->first.first;
  }

  TempDir dir_;
  FaultyIo io_;
  JournalOptions options_;
  std::unique_ptr<Journal> journal_;
  History history_{7};
};

TEST_F(JournalCheckTest, ASegmentThatOnlyTheIntakeNeedsIsInUse) {
  Create();
  const auto own = journal_->NewSegment();
  ASSERT_OK(own);
  const auto staged = journal_->Stage(AsBytes(std::string(100, 'x')), *own, 0);
  ASSERT_OK(staged);
  InodeEdit inode{Ino{2}, {}, InodeRecord{}};
  inode.after->attr.size = 100;
  Change change{.op = Op::kWrite};
  change.edits.emplace_back(inode);
  change.edits.emplace_back(ExtentEdit{Ino{2}, {}, {{0, 100, staged->ref}}});
  ASSERT_OK(journal_->Append(change, &*staged));
  Crash();
  const CheckReport report = Check();
  EXPECT_EQ(TextOf(report), "");
  EXPECT_EQ(report.notes, std::vector<std::string>());
}

TEST_F(JournalCheckTest, FindsNothingWrongWithASoundJournal) {
  Create();
  ExpectSound();
  for (int round = 0; round < 3; ++round) {
    Steps(100, 40'000);
    ExpectSound();  // in the intake
    ASSERT_OK(journal_->Drain());
    ExpectSound();  // in the tables
    Steps(50);
    Crash();
    ExpectSound();  // of a daemon that died
    auto journal = Journal::Open(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
    ExpectSound();
  }
  const CheckReport report = Check();
  EXPECT_EQ(report.changes, 450u);
  EXPECT_GT(report.content_bytes, 0u);
}

TEST_F(JournalCheckTest, CountsWhatIsStillInTheIntake) {
  Create();
  Steps(30);
  EXPECT_EQ(Check().changes, 30u);
}

// --- tables ----------------------------------------------------------------

TEST_F(JournalCheckTest, NamesMissingTables) {
  MakeClosed();
  ASSERT_EQ(::unlink(Path("db/data.mdb").c_str()), 0);
  ExpectKinds({"tables.damaged"});
}

TEST_F(JournalCheckTest, NamesTablesThatWereCutShort) {
  MakeClosed();
  ASSERT_EQ(::truncate(Path("db/data.mdb").c_str(), 40'000), 0);
  ExpectKinds({"tables.damaged"});
}

TEST_F(JournalCheckTest, NamesTablesWhoseFirstPagesAreNone) {
  MakeClosed();
  Overwrite("db/data.mdb", 16, "....");
  ExpectKinds({"tables.damaged"});
}

TEST_F(JournalCheckTest, SurvivesPagesThatLmdbDiesOf) {
  MakeClosed();
  // The numbers of the tables' root pages are in both first pages.
  const std::string far("\xFF\xFF\xFF\x0F\x00\x00\x00\x00", 8);
  Overwrite("db/data.mdb", 16 + 24 + 48 + 40, far);
  Overwrite("db/data.mdb", 4096 + 16 + 24 + 48 + 40, far);
  ExpectKinds({"tables.damaged"});
}

TEST_F(JournalCheckTest, NamesAVersionItDoesNotKnow) {
  MakeClosed();
  Edit([](Tables& tables) { tables.PutFormat(99); });
  ExpectKinds({"version"});
}

TEST_F(JournalCheckTest, NamesRowsThatCannotBeDecoded) {
  const std::pair<const char*, size_t> rows[] = {
      {"inode", 8},     {"dentry", 9}, {"extent", 16}, {"xattr", 3},
      {"savepoint", 9}, {"meta", 5},   {"denial", 8},  {"rule", 9}};
  MakeClosed();
  for (const auto& [table, size] : rows) {
    const Bytes key(size, std::byte{0x7F});
    PutRaw(table, key, AsBytes("?"));
    const CheckReport report = Check();
    EXPECT_TRUE(KindsOf(report).contains("tables.row")) << table;
    EXPECT_NE(TextOf(report).find(table), std::string::npos);
    PutRaw(table, key, {});
  }
  ExpectSound();
}

TEST_F(JournalCheckTest, NamesAnOriginWithoutItsInode) {
  MakeClosed();
  Bytes origin;
  Encoder encoder(origin);
  EncodeOrigin(BaseOrigin{.path = "a"}, "", encoder);
  PutRaw("origin", Key(4711), origin);
  ExpectKinds({"tables.row"});
}

TEST_F(JournalCheckTest, NamesRowsAndTablesNothingIsKnownAbout) {
  MakeClosed();
  PutRaw("stranger", Key(1), AsBytes("x"));
  ExpectKinds({"tables.row"});
}

TEST_F(JournalCheckTest, FollowsSavepointsAndRollbacks) {
  Create();
  std::vector<std::pair<Savepoint, History>> marks;
  for (int round = 0; round < 12; ++round) {
    Steps(20, 40'000);
    if (round % 4 == 3) {
      const auto& [mark, past] = marks[marks.size() - 2];
      ASSERT_OK(journal_->Rollback(
          {.op = Op::kRollback, .path = mark.name, .offset = Raw(mark.lsn)}));
      history_.GoBack(past);
      marks.pop_back();
    } else {
      ASSERT_OK(journal_->Append(
          {.op = Op::kSavepoint, .path = "sp" + std::to_string(round)}));
      marks.emplace_back(journal_->Savepoints().back(), history_);
    }
    ExpectSound();
  }
  ASSERT_OK(journal_->Drain());
  ExpectSound();
  journal_.reset();
  ExpectSound();
  const Bytes key = Key(Raw(marks.front().first.lsn));
  PutRaw("savepoint", key, {});
  ExpectKinds({"tables.savepoints"});
}

TEST_F(JournalCheckTest, NamesDamageInWhatASavepointNeeds) {
  Create();
  Steps(60, 40'000);
  ASSERT_OK(journal_->Append({.op = Op::kSavepoint, .path = "sp"}));
  const auto then = history_.model.extents;
  Steps(200, 40'000);
  std::set<std::pair<uint32_t, uint64_t>> needed;
  for (const auto& [key, extent] : history_.model.extents) {
    needed.emplace(extent.content.segment, extent.content.record_position);
  }
  const auto lost =
      std::find_if(then.begin(), then.end(), [&](const auto& row) {
        const ContentRef& ref = row.second.content;
        return ref.segment != 0 &&
               !needed.contains({ref.segment, ref.record_position});
      });
  ASSERT_NE(lost, then.end());
  journal_.reset();
  const ContentRef& ref = lost->second.content;
  Overwrite("spool/" + SegmentName(ref.segment), ref.record_position, "damage");
  ExpectHas("spool.content");
}

TEST_F(JournalCheckTest, NamesAStateThatIsNone) {
  MakeClosed();
  Edit([](Tables& tables) { tables.PutMeta("state", "confused"); });
  ExpectKinds({"tables.row"});
}

TEST_F(JournalCheckTest, NamesACursorThatDoesNotFollowTheLog) {
  MakeClosed();
  Edit([](Tables& tables) {
    tables.PutCursor({.salt = 1, .position = 0, .next_lsn = Lsn{100}});
  });
  ExpectKinds({"tables.cursor"});
  PutRaw("meta", AsBytes("cursor"), AsBytes("x"));
  ExpectKinds({"tables.cursor"});
}

TEST_F(JournalCheckTest, SurvivesTablesFullOfGarbage) {
  MakeClosed();
  for (const std::string fill : {"\xFF", "\x7F", "\x01", "\x02"}) {
    struct stat st{};
    ASSERT_EQ(::stat(Path("db/data.mdb").c_str(), &st), 0);
    const auto size = static_cast<size_t>(st.st_size) - size_t{2} * 4096;
    Overwrite("db/data.mdb", size_t{2} * 4096, std::string(size, fill[0]));
    ExpectKinds({"tables.damaged"});
  }
}

// --- denials ---------------------------------------------------------------

/// Six of one rule, of three kinds, and what is allowed between them; the last
/// LSN is 9.
class DenialCheckTest : public JournalCheckTest {
 protected:
  DenialCheckTest() {
    Create();
    for (const char* path : {"a", "b", "a", "", "c", "", "b", "", "a"}) {
      Change change{.op = Op::kMkdir, .path = path};
      if (!change.path.empty()) Refuse(change);
      EXPECT_OK(journal_->Append(change));
    }
    journal_.reset();
  }
  static void Refuse(Change& change) {
    change.result = EPERM;
    change.policy = 7;
    change.rule = "hooks";
  }
  static LogEntry Row(uint64_t lsn, uint64_t count) {
    LogEntry row{.lsn = Lsn{lsn}, .change = {}, .count = count};
    Refuse(row.change);
    return row;
  }
  static DeniedRule Rule(uint64_t count) {
    return {.policy = 7, .rule = "hooks", .count = count};
  }
};

TEST_F(DenialCheckTest, FindsNothingWrong) {
  ExpectSound();
  EXPECT_EQ(Check().changes, 3U);
}

TEST_F(DenialCheckTest, NamesACountThatIsNotWhatTheLogLacks) {
  Edit([](Tables& tables) { tables.PutRule(Rule(7)); });
  ExpectKinds({"log.gap"});
  PutRaw("log", Key(4), {});
  ExpectSound();  // a denial could have been there
  Edit([](Tables& tables) { tables.PutRule(Rule(6)); });
  ExpectKinds({"log.gap"});
}

TEST_F(DenialCheckTest, NamesARuleThatRefusedLessThanThereIs) {
  Edit([](Tables& tables) { tables.PutDenial(Row(5, 2)); });
  ExpectKinds({"tables.row"});
}

TEST_F(DenialCheckTest, NamesADenialWithoutItsRule) {
  Edit([](Tables& tables) {
    LogEntry row = Row(5, 1);
    row.change.rule = "other";
    tables.PutDenial(row);
  });
  ExpectKinds({"tables.row"});
}

TEST_F(DenialCheckTest, NamesADenialThatIsInTheLogToo) {
  Edit([](Tables& tables) {
    tables.EraseDenial(Lsn{5});
    tables.PutDenial(Row(4, 1));
  });
  ExpectKinds({"tables.row"});
}

TEST_F(DenialCheckTest, NamesOneBehindTheCursor) {
  Edit([](Tables& tables) {
    tables.PutDenial(Row(10, 1));
    tables.PutRule(Rule(7));
  });
  ExpectKinds({"tables.cursor"});
}

TEST_F(DenialCheckTest, NamesTheNewestWhenItIsMissing) {
  Edit([](Tables& tables) { tables.EraseDenial(Lsn{9}); });
  ExpectKinds({"tables.cursor", "log.gap"});
}

TEST_F(DenialCheckTest, NamesWhatIsNoDenial) {
  for (int i = 0; i < 4; ++i) {
    Edit([&](Tables& tables) {
      LogEntry row = Row(5, 1);
      if (i == 0) row.change.result = 0;
      if (i == 1) row.change.rule = "";
      if (i == 2) row.count = 0;
      if (i == 3) row.change.edits.emplace_back(InodeEdit{Ino{2}, {}, {}});
      tables.PutDenial(row);
    });
    ExpectKinds({"tables.row"});
  }
}

TEST_F(DenialCheckTest, NamesTablesWithMoreRowsThanThereMayBe) {
  Edit([](Tables& tables) {
    for (uint64_t lsn = 1000; lsn < 2000; ++lsn) {
      tables.PutDenial(Row(lsn, 1));
    }
    tables.PutRule(Rule(1996));
    tables.PutCursor({.salt = 1, .position = 0, .next_lsn = Lsn{2000}});
  });
  ExpectKinds({"tables.row"});
}

// --- log -------------------------------------------------------------------

TEST_F(JournalCheckTest, NamesAGapInTheLog) {
  MakeClosed();
  PutRaw("log", Key(50), {});
  ExpectHas("log.gap");
}

TEST_F(JournalCheckTest, NamesAChangeThatCannotBeDecoded) {
  MakeClosed();
  PutRaw("log", Key(50), AsBytes("nonsense"));
  ExpectHas("log.record");
}

TEST_F(JournalCheckTest, NamesARefusedChangeWithEdits) {
  MakeClosed();
  Change change{.op = Op::kChmod, .result = EPERM};
  change.edits.emplace_back(DentryEdit{Ino{2}, "name0", {}, {}});
  Bytes bytes;
  EncodeChange(change, bytes);
  Edit([&](Tables& tables) { tables.PutLog(Lsn{201}, bytes); });
  ExpectHas("log.record");
}

TEST_F(JournalCheckTest, NamesABeforeThatWasNotSo) {
  MakeClosed();
  Change change{.op = Op::kRename};
  change.edits.emplace_back(XattrEdit{Ino{77}, "user.x", "was", "is"});
  Bytes bytes;
  EncodeChange(change, bytes);
  Edit([&](Tables& tables) {
    Apply(change, tables);
    tables.PutLog(Lsn{201}, bytes);
    tables.PutCursor({.salt = 1, .position = 0, .next_lsn = Lsn{202}});
  });
  ExpectKinds({"log.before"});
}

TEST_F(JournalCheckTest, NamesTablesThatAreNotWhatTheLogLeadsTo) {
  MakeClosed();
  const std::function<void(Tables&)> edits[] = {
      [](Tables& tables) { tables.SetAttr(Ino{900}, {}); },
      [](Tables& tables) {
        tables.SetDentry(Ino{2}, "stranger", {DentryKind::kWhiteout, kNoIno});
      },
      [](Tables& tables) { tables.PutExtent(Ino{900}, {0, 10, {}}); },
      [](Tables& tables) { tables.SetXattr(Ino{2}, "user.y", "?"); },
  };
  for (const auto& edit : edits) {
    Edit(edit);
    ExpectKinds({"log.redo"});
    Edit([](Tables& tables) {
      tables.SetInode(Ino{900}, {});
      tables.SetDentry(Ino{2}, "stranger", {});
      tables.EraseExtent(Ino{900}, {0, 10, {}});
      tables.SetXattr(Ino{2}, "user.y", {});
    });
  }
  ExpectSound();
}

// --- intake ----------------------------------------------------------------

TEST_F(JournalCheckTest, NamesAMissingOrDamagedIntake) {
  MakeClosed();
  Overwrite("intake", 16, "x");
  ExpectKinds({"intake.header"});
  ASSERT_EQ(::unlink(Path("intake").c_str()), 0);
  ExpectKinds({"intake.header"});
}

TEST_F(JournalCheckTest, NamesAnIntakeOfAnUnknownVersion) {
  MakeClosed();
  Overwrite("intake", 8, "\x63");
  ExpectKinds({"version"});
}

TEST_F(JournalCheckTest, NamesAnIntakeRecordThatMeansNothing) {
  MakeClosed();
  const auto db = Db::Open(dir_.Open().get(), options_.map_bytes, io_);
  ASSERT_OK(db);
  const auto intake = Intake::Open(dir_.Open().get(), io_);
  ASSERT_OK(intake);
  (*intake)->BeginEpoch(*(*db)->GetCursor());
  ASSERT_OK((*intake)->Append(AsBytes("nonsense"), {}, {}));
  ExpectKinds({"intake.record"});
}

TEST_F(JournalCheckTest, NamesAnIntakeRecordWhoseContentIsGone) {
  Create();
  Steps(20);
  ASSERT_OK(journal_->Drain());
  const std::string content = Content(1, 100'000);
  const auto staged = journal_->Stage(AsBytes(content));
  ASSERT_OK(staged);
  Change change{.op = Op::kWrite};
  change.edits.emplace_back(
      ExtentEdit{Ino{50}, {}, {{0, content.size(), staged->ref}}});
  ASSERT_OK(journal_->Append(change, &*staged));
  Crash();
  ExpectSound();
  Overwrite("spool/" + SegmentName(staged->ref.segment),
            staged->ref.record_position + 500, "x");
  ExpectKinds({"intake.content"});
}

TEST_F(JournalCheckTest, TakesGarbageBehindTheRecordsForNormal) {
  Create();
  Steps(20);
  Crash();
  Overwrite("intake", 200'000, Content(3, 5000));
  ExpectSound();
}

// --- spool -----------------------------------------------------------------

TEST_F(JournalCheckTest, NamesContentWithAnotherChecksum) {
  MakeClosed();
  const ContentRef& ref = SomeExtent().content;
  Overwrite("spool/" + SegmentName(ref.segment), ref.record_position, "\xFFx");
  ExpectKinds({"spool.content"});
}

TEST_F(JournalCheckTest, NamesAMissingSegment) {
  MakeClosed();
  const std::string name = SegmentName(SomeExtent().content.segment);
  ASSERT_EQ(::unlink(Path("spool/" + name).c_str()), 0);
  const CheckReport report = Check();
  EXPECT_EQ(KindsOf(report), Kinds{"spool.content"});
  EXPECT_NE(TextOf(report).find(name), std::string::npos);
}

TEST_F(JournalCheckTest, NamesASegmentThatWasCutShort) {
  MakeClosed();
  const std::string name = SegmentName(SomeExtent().content.segment);
  ASSERT_EQ(::truncate(Path("spool/" + name).c_str(), 100), 0);
  ExpectKinds({"spool.content"});
}

TEST_F(JournalCheckTest, NamesAMissingSpool) {
  MakeClosed();
  ASSERT_OK(RemoveTree(AT_FDCWD, Path("spool")));
  ExpectKinds({"spool.missing"});
}

TEST_F(JournalCheckTest, NamesWhatIsNoSegment) {
  MakeClosed();
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("spool/stranger"), "?"));
  ExpectKinds({"spool.entry"});
}

TEST_F(JournalCheckTest, NotesASegmentNobodyPointsAt) {
  MakeClosed();
  ASSERT_OK(ReplaceFile(AT_FDCWD, Path("spool/0000beef"), "?"));
  const CheckReport report = Check();
  EXPECT_EQ(TextOf(report), "");
  ASSERT_FALSE(report.notes.empty());
  EXPECT_NE(report.notes.back().find("0000beef"), std::string::npos);
}

TEST_F(JournalCheckTest, NamesExtentsThatDifferAboutARecord) {
  MakeClosed();
  Extent extent = SomeExtent();
  extent.content.checksum ^= 1;
  Edit([&](Tables& tables) { tables.PutExtent(Ino{900}, extent); });
  ExpectHas("spool.record");
}

TEST_F(JournalCheckTest, NamesContentThatTwoExtentsShare) {
  MakeClosed();
  Edit([&](Tables& tables) { tables.PutExtent(Ino{900}, SomeExtent()); });
  ExpectHas("spool.overlap");
}

TEST_F(JournalCheckTest, NamesRecordsThatOverlap) {
  MakeClosed();
  Extent extent = SomeExtent();
  ++extent.content.record_position;
  Edit([&](Tables& tables) { tables.PutExtent(Ino{900}, extent); });
  ExpectHas("spool.overlap");
}

TEST_F(JournalCheckTest, NamesARecordOfImpossibleLength) {
  MakeClosed();
  Extent extent = SomeExtent();
  extent.content.record_length = kRecordContentMax + 1;
  extent.content.record_position = uint64_t{1} << 40;
  Edit([&](Tables& tables) { tables.PutExtent(Ino{900}, extent); });
  ExpectHas("tables.row");
}

TEST_F(JournalCheckTest, NamesASegmentOfTwoInodes) {
  MakeClosed();
  const Attr attr{.own_segment = 77};
  Edit([&](Tables& tables) {
    tables.SetAttr(Ino{900}, attr);
    tables.SetAttr(Ino{901}, attr);
  });
  ExpectHas("spool.owner");
}

TEST_F(JournalCheckTest, NamesContentInAnothersSegment) {
  MakeClosed();
  Edit([&](Tables& tables) {
    tables.SetAttr(Ino{900}, {.own_segment = SomeExtent().content.segment});
  });
  ExpectHas("spool.owner");
}

TEST_F(JournalCheckTest, KeepsAHundredProblemsOfAKindAndCountsTheRest) {
  MakeClosed();
  Edit([](Tables& tables) {
    for (uint64_t i = 0; i < 150; ++i) tables.SetAttr(Ino{900 + i}, {});
  });
  const CheckReport report = Check();
  ASSERT_EQ(report.problems.size(), 101u);
  EXPECT_NE(report.problems.back().message.find("50 more"), std::string::npos);
}

// --- store -----------------------------------------------------------------

class LayoutCheckTest : public ::testing::Test {
 protected:
  LayoutCheckTest() {
    auto store = Store::Open(dir_.Open(), dir_.path(), "/work");
    EXPECT_OK(store);
    options_.background_drain = false;
    options_.intake_bytes = 64 << 10;
    auto ended = (*store)->Begin("", {.sec = 1000}, options_);
    EXPECT_OK(ended);
    old_ = ended->id;
    EXPECT_OK(EndTransaction(**store, std::move(*ended),
                             {.id = old_,
                              .state = TransactionState::kDiscarded,
                              .created = {.sec = 1000},
                              .ended = {.sec = 1001}}));
    auto open = (*store)->Begin("", {.sec = 2000}, options_);
    EXPECT_OK(open);
    id_ = open->id;
  }

  CheckReport Check(size_t transactions) {
    CheckReport report;
    const auto open = CheckLayout(dir_.Open().get(), Findings(report, ""));
    EXPECT_OK(open);
    EXPECT_EQ(open->open.size(), transactions);
    return report;
  }
  void ExpectKinds(const Kinds& kinds, size_t transactions = 1) {
    const CheckReport report = Check(transactions);
    EXPECT_EQ(KindsOf(report), kinds) << TextOf(report);
  }
  void Put(const std::string& name, std::string_view content) {
    ASSERT_OK(ReplaceFile(AT_FDCWD, dir_.path() + "/" + name, content));
  }
  void Remove(const std::string& name) {
    ASSERT_OK(RemoveTree(AT_FDCWD, dir_.path() + "/" + name));
  }

  TempDir dir_;
  JournalOptions options_;
  std::string old_, id_;
};

TEST_F(LayoutCheckTest, FindsNothingWrongWithASoundStore) {
  ExpectKinds({});
  EXPECT_EQ(Check(1).transactions, 1u);
}

TEST_F(LayoutCheckTest, NamesADamagedFormat) {
  Put("FORMAT", "something else\n");
  ExpectKinds({"store.format"});
}

TEST_F(LayoutCheckTest, GoesNoFurtherInAStoreOfAnotherVersion) {
  Put("FORMAT", "txfs store 2\n");
  ExpectKinds({"version"}, 0);
}

TEST_F(LayoutCheckTest, NamesAWorkspaceThatIsNoPath) {
  Put("workspace", "here");
  ExpectKinds({"store.workspace"});
}

TEST_F(LayoutCheckTest, NamesAReservedIdThatIsNone) {
  Put("reserved", id_);
  ExpectKinds({});
  Put("reserved", id_.substr(1));
  ExpectKinds({"store.reserved"});
}

TEST_F(LayoutCheckTest, NamesWhatIsMissing) {
  Remove("FORMAT");
  ExpectKinds({"store.entry"}, 0);
}

TEST_F(LayoutCheckTest, NamesWhatDoesNotBelongThere) {
  for (const std::string& place :
       {std::string(), std::string("txn/"), std::string("history/"),
        "txn/" + id_ + "/"}) {
    Put(place + "stranger", "?");
    ExpectKinds({"store.entry"});
    Remove(place + "stranger");
  }
  ExpectKinds({});
}

TEST_F(LayoutCheckTest, LetsWhatACrashLeavesBe) {
  Put("FORMAT.new", "?");
  Put("txn/" + id_ + "/summary.new", "?");
  Put("history/" + id_ + ".new", "?");
  ASSERT_OK(
      MakeDirectoryAt(AT_FDCWD, dir_.path() + "/txn/0123456789ab.new", 0700));
  ExpectKinds({});
}

TEST_F(LayoutCheckTest, NamesFilesThatATransactionLacks) {
  for (const std::string& name :
       std::vector<std::string>{"lock", "summary", "intake", "db", "spool"}) {
    const std::string path = dir_.path() + "/txn/" + id_ + "/" + name;
    ASSERT_EQ(::rename(path.c_str(), (dir_.path() + "/kept").c_str()), 0);
    ASSERT_EQ(
        ::rename((dir_.path() + "/kept").c_str(), (path + ".new").c_str()), 0);
    const CheckReport report = Check(0);
    EXPECT_TRUE(KindsOf(report).contains("store.transaction")) << name;
    ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
  }
  ExpectKinds({});
}

TEST_F(LayoutCheckTest, NamesDamagedSummaries) {
  const std::string path = "txn/" + id_ + "/summary";
  Put(path, "?");
  ExpectKinds({"store.summary"});
  TransactionSummary summary{.id = old_, .created = {.sec = 5}};
  Put(path, AsText(EncodeSummary(summary)));
  ExpectKinds({"store.summary"});
  summary = {
      .id = id_, .state = TransactionState::kCommitted, .ended = {.sec = 5}};
  Put(path, AsText(EncodeSummary(summary)));
  ExpectKinds({"store.summary"});
  Put(path, AsText(EncodeSummary({.id = id_})));
  ExpectKinds({});
  Put("history/" + old_, AsText(EncodeSummary({.id = old_})));
  ExpectKinds({"store.summary"});
}

TEST(InBothTest, KeepsWhatWasFoundTwice) {
  const std::vector<Problem> first{{"a", "x", "1"}, {"b", "x", "2"}};
  const std::vector<Problem> second{{"b", "x", "2"}, {"c", "x", "3"}};
  EXPECT_EQ(InBoth(first, second), (std::vector<Problem>{{"b", "x", "2"}}));
}

}  // namespace
}  // namespace txfs
