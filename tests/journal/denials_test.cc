#include <gtest/gtest.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <algorithm>

#include "journal/check.h"
#include "journal/denial_table.h"
#include "journal/journal.h"
#include "journal/rows.h"
#include "journal/summary.h"
#include "tests/format_page.h"
#include "tests/journal/fixture.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

Change Denied(const std::string& path, const std::string& rule = "hooks") {
  Change change{.op = Op::kUnlink,
                .result = EPERM,
                .time = {1'700'000'000, 0},
                .pid = 42,
                .uid = 1000,
                .exe = "/bin/rm",
                .path = path};
  change.policy = 7;
  change.rule = rule;
  change.reason = "why " + rule;
  change.suggest = "instead of " + rule;
  return change;
}

/// The same a moment later, by another process.
Change Again(Change change, int64_t after) {
  change.time.sec += after;
  change.pid += static_cast<uint32_t>(after);
  change.offset += 4096;
  return change;
}

class DenialsTest : public ::testing::Test {
 protected:
  DenialsTest() {
    options_.background_drain = false;
    options_.map_bytes = 64 << 20;
    options_.intake_bytes = 256 << 10;
    options_.io = &io_;
    auto journal = Journal::Create(dir_.Open(), options_);
    EXPECT_OK(journal);
    journal_ = std::move(*journal);
  }
  ~DenialsTest() override {
    journal_.reset();
    EXPECT_EQ(Problems(), "");
  }

  void Reopen() {
    journal_.reset();
    auto journal = Journal::Open(dir_.Open(), options_);
    ASSERT_OK(journal);
    journal_ = std::move(*journal);
  }
  /// Nothing more reaches the tables, as when the daemon is killed.
  void Crash() {
    io_.commit_error = EIO;
    journal_.reset();
    io_.commit_error = 0;
    EXPECT_EQ(Problems(), "");
    Reopen();
  }
  std::string Problems() {
    CheckReport report;
    EXPECT_OK(CheckJournal(dir_.Open().get(), Findings(report, "txn/1")));
    std::string text;
    for (const Problem& problem : report.problems) {
      text += problem.kind + ": " + problem.message + "\n";
    }
    return text;
  }
  void Append(const Change& change) { ASSERT_OK(journal_->Append(change)); }
  void Flood(int from, int to) {
    for (int i = from; i < to; ++i) Append(Denied("d/" + std::to_string(i)));
  }
  Denials Read() {
    auto denials = journal_->ReadDenials();
    EXPECT_OK(denials);
    return denials ? *std::move(denials) : Denials();
  }
  /// "PATH xCOUNT", the oldest first.
  std::string Entries() {
    std::string text;
    for (const LogEntry& entry : Read().entries) {
      text += entry.change.path + " x" + std::to_string(entry.count) + "\n";
    }
    return text;
  }
  /// What the log shows: LSN and path.
  std::string Log(uint64_t first = 1) {
    std::string text;
    EXPECT_OK(journal_->ReadLog(Lsn{first}, [&](const LogEntry& entry) {
      text += std::to_string(Raw(entry.lsn)) + " " + entry.change.path + "\n";
      return true;
    }));
    return text;
  }
  uint64_t TableBytes() {
    struct stat st{};
    EXPECT_EQ(::stat((dir_.path() + "/db/data.mdb").c_str(), &st), 0);
    return static_cast<uint64_t>(st.st_blocks) * 512;
  }
  /// Makes the tables what version 1 had, with `logged` in the log.
  void MakeOld(const Change& logged) {
    MDB_env* env = nullptr;
    ASSERT_EQ(mdb_env_create(&env), 0);
    ASSERT_EQ(mdb_env_set_maxdbs(env, 10), 0);
    ASSERT_EQ(mdb_env_open(env, (dir_.path() + "/db").c_str(), 0, 0600), 0);
    MDB_txn* txn = nullptr;
    ASSERT_EQ(mdb_txn_begin(env, nullptr, 0, &txn), 0);
    for (const char* table : {"denial", "rule"}) {
      MDB_dbi dbi = 0;
      ASSERT_EQ(mdb_dbi_open(txn, table, 0, &dbi), 0);
      ASSERT_EQ(mdb_drop(txn, dbi, 1), 0);
    }
    const auto put = [&](const char* table, ByteSpan key, ByteSpan value) {
      MDB_dbi dbi = 0;
      MDB_val k{key.size(), const_cast<std::byte*>(key.data())};
      MDB_val v{value.size(), const_cast<std::byte*>(value.data())};
      return mdb_dbi_open(txn, table, 0, &dbi) == 0 &&
             mdb_put(txn, dbi, &k, &v, 0) == 0;
    };
    Bytes lsn;
    AppendKey(lsn, 1);
    Bytes change;
    EncodeChange(logged, change);
    Bytes version;
    Encoder(version).Put(uint32_t{1});
    EXPECT_TRUE(put("log", lsn, change));
    EXPECT_TRUE(put("meta", AsBytes("format"), version));
    ASSERT_EQ(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
  }

  TempDir dir_;
  FaultyIo io_;
  JournalOptions options_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(DenialsTest, RepeatsAreOneEntryWithACount) {
  const Change first = Denied("a");
  Append(first);
  Append(Denied("b"));
  Append(Again(first, 5));
  const Denials denials = Read();
  EXPECT_EQ(Entries(), "b x1\na x2\n");
  const LogEntry& entry = denials.entries.back();
  EXPECT_EQ(entry.first, first.time);
  EXPECT_EQ(entry.change, Again(first, 5));
  ASSERT_EQ(denials.rules.size(), 1U);
  EXPECT_EQ(denials.rules[0].count, 3U);
  EXPECT_EQ(denials.rules[0].first, first.time);
  EXPECT_EQ(denials.rules[0].last, Again(first, 5).time);
  EXPECT_EQ(denials.Dropped(), 0U);
}

TEST_F(DenialsTest, WhatDiffersIsAnotherOne) {
  Append(Denied("a"));
  std::vector<Change> others(7, Denied("a"));
  others[0].op = Op::kWrite;
  others[1].result = EROFS;
  others[2].exe = "/bin/mv";
  others[3].uid = 0;
  others[4].new_path = "b";
  others[5].rule = "other";
  others[6].policy = 8;
  for (const Change& other : others) Append(other);
  EXPECT_EQ(Read().entries.size(), 8U);
  EXPECT_EQ(Read().rules.size(), 3U);
  const std::vector<RuleCount> counts{{"hooks", 7}, {"other", 1}};
  EXPECT_EQ(Read().CountByRule(), counts);
}

TEST_F(DenialsTest, EachPolicysTextsAreKept) {
  Append(Denied("a"));
  Change later = Denied("a");
  later.policy = 8;
  later.reason = "another reason";
  Append(later);
  for (int i = 0; i < 3; ++i) {
    const Denials denials = Read();
    ASSERT_EQ(denials.entries.size(), 2U);
    EXPECT_EQ(denials.entries[0].change.reason, "why hooks");
    EXPECT_EQ(denials.entries[1].change.reason, "another reason");
    EXPECT_EQ(denials.entries[1].change.suggest, "instead of hooks");
    // Nothing was drained, then everything.
    i == 0 ? Crash() : Reopen();
    Append(Again(Denied("a"), i));
    Append(Again(later, i));
  }
}

TEST_F(DenialsTest, AFloodIsCountedAndTheFirstAndTheLastAreKept) {
  Append(Denied("before", "other"));
  Append(Denied("between", "other"));
  Append(Denied("after", "other"));
  for (const bool reopened : {false, true}) {
    Flood(reopened ? 10'000 : 0, reopened ? 20'000 : 10'000);
    const Denials denials = Read();
    ASSERT_EQ(denials.entries.size(), DenialTable::kMaxEntries);
    EXPECT_EQ(denials.entries[0].change.path, "before");
    EXPECT_EQ(denials.entries[1].change.path, "between");
    EXPECT_EQ(denials.entries[2].change.path, "after");
    EXPECT_EQ(denials.entries[3].change.path, "d/0");
    EXPECT_EQ(denials.entries[4].change.path, reopened ? "d/19004" : "d/9004");
    EXPECT_EQ(denials.entries.back().change.path,
              reopened ? "d/19999" : "d/9999");
    const uint64_t flood = reopened ? 20'000 : 10'000;
    const std::vector<RuleCount> counts{{"hooks", flood}, {"other", 3}};
    EXPECT_EQ(denials.CountByRule(), counts);
    EXPECT_EQ(denials.Dropped(), flood + 3 - DenialTable::kMaxEntries);
    Reopen();
  }
}

TEST_F(DenialsTest, TheFirstOfARuleStaysWhereItIsRepeated) {
  Append(Denied("first"));
  Flood(0, 500);
  Append(Denied("first"));
  Flood(500, 3'000);
  EXPECT_NE(Entries().find("first x2"), std::string::npos);
}

TEST_F(DenialsTest, MoreRulesThanEntriesAreBounded) {
  for (int i = 0; i < 1'500; ++i) {
    Append(Denied("d", "rule" + std::to_string(i)));
  }
  EXPECT_EQ(Read().entries.size(), DenialTable::kMaxEntries);
  Reopen();
  EXPECT_EQ(Read().rules.size(), 1'500U);
}

TEST_F(DenialsTest, TheLastOnesAreThoseThatCameLast) {
  Append(Denied("often"));
  for (int i = 0; i < 5000; ++i) {
    Append(Denied("d/" + std::to_string(i)));
    if (i % 500 == 0) Append(Denied("often"));
  }
  for (const LogEntry& entry : Read().entries) {
    EXPECT_EQ(entry.count, entry.change.path == "often" ? 11U : 1U);
  }
  EXPECT_NE(Entries().find("often x11"), std::string::npos);
}

TEST_F(DenialsTest, AFloodDoesNotMakeTheTablesGrow) {
  // Below full scale still more than the tables keep.
  const int flood = std::max(4000, Scaled(20'000));
  Flood(0, flood);
  ASSERT_OK(journal_->Drain());
  const uint64_t before = TableBytes();
  Flood(flood, 3 * flood);
  ASSERT_OK(journal_->Drain());
  EXPECT_LE(TableBytes(), before + (256U << 10));
  EXPECT_EQ(journal_->last_lsn(), Lsn{static_cast<uint64_t>(3 * flood)});
}

TEST_F(DenialsTest, TheySurviveACrash) {
  std::string expected;
  for (int i = 0; i < 4; ++i) {
    Append(Denied("a"));
    Append({.op = Op::kMkdir, .path = "allowed"});
    Append(Denied("b" + std::to_string(i)));
    expected = Entries();
    if (i % 2 == 0) ASSERT_OK(journal_->Drain());
    if (i == 2) Append(Denied("a"));
    if (i == 2) expected = Entries();
    Crash();
    EXPECT_EQ(Entries(), expected);
  }
  EXPECT_EQ(Read().CountByRule(), (std::vector<RuleCount>{{"hooks", 9}}));
}

TEST_F(DenialsTest, ABatchThatFailedCountsNothing) {
  Append(Denied("a"));
  Append(Denied("a"));
  io_.commit_error = EIO;
  EXPECT_ERRNO(journal_->Drain(), EIO);
  EXPECT_EQ(Entries(), "a x2\n");
  io_.commit_error = 0;
  ASSERT_OK(journal_->Drain());
  EXPECT_EQ(Entries(), "a x2\n");
  Reopen();
  EXPECT_EQ(Entries(), "a x2\n");
}

TEST_F(DenialsTest, OneCostsNoSyncAndNoBatch) {
  io_.sync_error = EIO;
  io_.commit_error = EIO;
  Flood(0, 100);
  EXPECT_EQ(Read().entries.size(), 100U);
  io_.sync_error = 0;
  io_.commit_error = 0;
}

TEST_F(DenialsTest, TheLogShowsThemInTheirPlace) {
  Append({.op = Op::kMkdir, .path = "x"});
  Append(Denied("a"));
  Append({.op = Op::kMkdir, .path = "y"});
  Append(Denied("b"));
  Append({.op = Op::kMkdir, .path = "z"});
  Append(Denied("a"));
  EXPECT_EQ(Log(), "1 x\n3 y\n4 b\n5 z\n6 a\n");
  EXPECT_EQ(Log(4), "4 b\n5 z\n6 a\n");
  EXPECT_EQ(Log(6), "6 a\n");
  EXPECT_EQ(Log(7), "");
  int seen = 0;
  ASSERT_OK(
      journal_->ReadLog(Lsn{1}, [&](const LogEntry&) { return ++seen < 3; }));
  EXPECT_EQ(seen, 3);
}

TEST_F(DenialsTest, ARollbackLeavesThem) {
  Append(Denied("before"));
  Append({.op = Op::kSavepoint, .path = "sp"});
  Append(Denied("after"));
  Append({.op = Op::kMkdir, .path = "x"});
  Append(Denied("before"));
  Change rollback{.op = Op::kRollback, .path = "sp"};
  rollback.offset = 2;
  const auto rewind = journal_->Rollback(rollback);
  ASSERT_OK(rewind);
  journal_->SettleRewind(*rewind);
  EXPECT_EQ(Entries(), "after x1\nbefore x2\n");
  Append(Denied("after"));
  Crash();
  EXPECT_EQ(Entries(), "before x2\nafter x2\n");
}

TEST_F(DenialsTest, LongStringsAreCut) {
  const std::string long_text(100'000, 'x');
  Change change = Denied(long_text, long_text);
  change.new_path = change.exe = change.reason = change.suggest = long_text;
  Append(change);
  Append(change);
  ASSERT_OK(journal_->Drain());
  const Denials denials = Read();
  ASSERT_EQ(denials.entries.size(), 1U);
  EXPECT_EQ(denials.entries[0].count, 2U);
  const Change& kept = denials.entries[0].change;
  for (const std::string& text :
       {kept.path, kept.new_path, kept.exe, kept.reason, kept.suggest}) {
    EXPECT_EQ(text, std::string(kMaxDenialText, 'x'));
  }
  EXPECT_EQ(kept.rule, std::string(kMaxDenialRule, 'x'));
}

TEST_F(DenialsTest, AnAuditIsNone) {
  Change change{.op = Op::kMkdir, .path = "x"};
  change.policy = 7;
  change.rule = "watched";
  Append(change);
  change.result = EEXIST;
  change.rule = "";
  Append(change);
  EXPECT_EQ(Entries(), "");
  EXPECT_EQ(Log(), "1 x\n2 x\n");
}

TEST_F(DenialsTest, AnOlderVersionGetsTheTablesAndKeepsItsLog) {
  Append({.op = Op::kMkdir, .path = "x"});
  journal_.reset();
  Change old = Denied("old");
  old.reason = old.suggest = "";
  MakeOld(old);
  EXPECT_EQ(Problems(), "");
  Reopen();
  EXPECT_EQ(Log(), "1 old\n");
  EXPECT_EQ(Entries(), "");
  Append(Denied("new"));
  Crash();
  EXPECT_EQ(Log(), "1 old\n2 new\n");
  EXPECT_EQ(Entries(), "new x1\n");
}

TEST_F(DenialsTest, TheExampleRowsAreWhatThePageSays) {
  LogEntry denial{.lsn = Lsn{3}, .change = Denied("a")};
  denial.change.reason = denial.change.suggest = "";
  denial.count = 2;
  denial.first = {1'700'000'000, 5};
  Bytes bytes;
  EncodeDenialValue(denial, bytes);
  EXPECT_EQ(Hex(ExampleBytes("denial")), Hex(bytes));

  const DeniedRule rule{.policy = 7,
                        .rule = "hooks",
                        .reason = "why",
                        .suggest = "ask",
                        .count = 2,
                        .first = {1'700'000'000, 5},
                        .last = {1'700'000'000, 6}};
  Bytes key;
  Bytes value;
  EncodeRuleRow(rule, key, value);
  EXPECT_EQ(Hex(ExampleBytes("rule key")), Hex(key));
  EXPECT_EQ(Hex(ExampleBytes("rule")), Hex(value));
  EXPECT_EQ(DecodeRuleRow(key, value), rule);
}

TEST(DenialsInSummaryTest, AreThereWhenThereAreAny) {
  TransactionSummary summary{.id = "000000000001"};
  const Bytes without = EncodeSummary(summary);
  EXPECT_EQ(std::to_integer<int>(without[8]), 1);  // what older programs read
  summary.denied = {{"hooks", 10}, {"secrets", 2}};
  Bytes with = EncodeSummary(summary);
  EXPECT_EQ(std::to_integer<int>(with[8]), 2);
  const auto decoded = DecodeSummary(with);
  ASSERT_OK(decoded);
  EXPECT_EQ(decoded->denied, summary.denied);
  ASSERT_OK(DecodeSummary(without));
  EXPECT_TRUE(DecodeSummary(without)->denied.empty());
}

}  // namespace
}  // namespace txfs
