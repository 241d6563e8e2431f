#include "fs/workspace/calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "journal/change.h"

namespace txfs {
namespace {

/// A log in which each test writes.
class CallsTest : public ::testing::Test {
 protected:
  void Begin(uint64_t number, const std::string& id = "") {
    Add({.op = Op::kSavepoint,
         .path = NameOf({.number = number}),
         .new_path = EncodeMark({.call = id})});
  }
  void End(uint64_t number) {
    Add({.op = Op::kSavepoint,
         .path = NameOf({.number = number, .end = true})});
  }
  void Write(const std::string& path) {
    Add({.op = Op::kWrite, .path = path, .edits = {AttrEdit{}}});
  }
  void RollBack(uint64_t number) {
    for (const Call& call : calls()) {
      if (call.number != number) continue;
      Add({.op = Op::kRollback, .offset = Raw(call.begin)});
      return;
    }
  }
  void Add(const Change& change) {
    log_.push_back({.lsn = Lsn{log_.size() + 1}, .change = change});
  }
  [[nodiscard]] std::vector<Call> calls() const {
    CallList list;
    for (const LogEntry& entry : log_) list.Add(entry);
    return std::move(list).Finish();
  }
  [[nodiscard]] std::vector<uint64_t> counts() const {
    std::vector<uint64_t> counts;
    for (const Call& call : calls()) counts.push_back(call.changes);
    return counts;
  }

 private:
  std::vector<LogEntry> log_;
};

using Counts = std::vector<uint64_t>;

TEST_F(CallsTest, AMarkIsCutAndHasNoBytesThatTheLogCannotHave) {
  const CallMark mark =
      BoundedMark({.host = "a\nb",
                   .call = std::string(1000, 'x'),
                   .command = std::string("one\0two\x1f", 8) + "\n" +
                              std::string(1 << 20, 'y')});
  EXPECT_EQ(mark.host, "a?b");
  EXPECT_EQ(mark.call, std::string(kMaxCallId, 'x'));
  EXPECT_EQ(mark.command.size(), kMaxCallCommand);
  EXPECT_EQ(mark.command.substr(0, 10), "one two \ny");
  EXPECT_EQ(EncodeMark(mark).find('\0'), std::string::npos);
  EXPECT_LT(EncodeMark(mark).size(), 4096u);
}

TEST_F(CallsTest, AMarkIsReadAsItWasWritten) {
  const CallMark mark{.host = "h",
                      .session = "s",
                      .turn = "",
                      .call = "c",
                      .agent = "a",
                      .tool = "t",
                      .command = "one\ntwo\xFF"};
  EXPECT_EQ(DecodeMark(EncodeMark(mark)), mark);
  EXPECT_EQ(DecodeMark(""), std::nullopt);
  EXPECT_EQ(DecodeMark("call\x1f"), std::nullopt);
  EXPECT_EQ(DecodeMark("a/path"), std::nullopt);
}

TEST_F(CallsTest, NamesOfCallsAreTheirNumbers) {
  EXPECT_EQ(NameOf({.number = 12}), "call-12");
  EXPECT_EQ(NameOf({.number = 12, .end = true}), "call-12-end");
  EXPECT_EQ(CallNamed("call-12"), (CallName{12, false}));
  EXPECT_EQ(CallNamed("call-12-end"), (CallName{12, true}));
  for (const char* name :
       {"", "call", "call-", "call--end", "call-0", "call-01", "call-1-ende",
        "call-1x", "call--1", "call-99999999999999999999", "sp1"}) {
    EXPECT_EQ(CallNamed(name), std::nullopt) << name;
  }
}

TEST_F(CallsTest, ChangesAreThoseUpToTheNextMark) {
  Write("before");
  Begin(1);
  Write("a");
  Write("a");
  Write("b");
  Begin(2);
  Write("c");
  End(2);
  Write("outside");
  Begin(3);
  EXPECT_EQ(counts(), (Counts{2, 1, 0}));
  EXPECT_EQ(calls()[0].operations, 3u);
  EXPECT_EQ(calls()[0].end, kNoLsn);
  EXPECT_NE(calls()[1].end, kNoLsn);
}

TEST_F(CallsTest, TheEndOfAnotherCallEndsNoChanges) {
  Begin(1);
  Begin(2);
  Write("a");
  End(1);
  Write("b");
  End(2);
  Begin(3);
  EXPECT_EQ(counts(), (Counts{0, 2, 0}));
  EXPECT_EQ(calls()[0].overlaps, Counts{2});
  EXPECT_EQ(calls()[1].overlaps, Counts{1});
  EXPECT_EQ(calls()[2].overlaps, Counts{});
}

TEST_F(CallsTest, WhatARollbackUndidDoesNotCount) {
  Begin(1);
  Write("a");
  Begin(2);
  Write("b");
  Begin(3);
  Write("c");
  RollBack(2);
  End(2);
  Write("outside");
  EXPECT_EQ(counts(), (Counts{1, 0, 0}));
  EXPECT_FALSE(calls()[1].gone);
  EXPECT_TRUE(calls()[2].gone);
}

TEST_F(CallsTest, ThePartThatIsCommittedTakesTheMarksAlong) {
  Begin(1);
  Write("a");
  Add({.op = Op::kCommit, .path = "id"});
  Write("b");
  Begin(2);
  Write("c");
  EXPECT_TRUE(calls()[0].gone);
  EXPECT_EQ(counts(), (Counts{0, 1}));
}

TEST_F(CallsTest, ACallIsFoundByNumberIdAndBeginningOfAnId) {
  Begin(1, "toolu_abc");
  Begin(2, "toolu_abd");
  Begin(3, "3x");
  Begin(4, "1");
  Begin(5, "toolu_abcd");
  const auto find = [&](const std::string& id) {
    return FindCall(calls(), id).value_or(0);
  };
  EXPECT_EQ(find("1"), 1u);
  EXPECT_EQ(find("4"), 4u);
  EXPECT_EQ(find("3x"), 3u);
  EXPECT_EQ(find("toolu_abc"), 1u);
  EXPECT_EQ(find("toolu_abd"), 2u);
  EXPECT_EQ(find("toolu"), 0u);
  EXPECT_EQ(find(""), 0u);
  EXPECT_EQ(find("nonsense"), 0u);
  RollBack(4);
  EXPECT_EQ(find("toolu_abcd"), 0u);
  EXPECT_EQ(find("5"), 0u);
}

TEST_F(CallsTest, SavepointsTellTheSpanOfACallAndTheCallOfAChange) {
  const std::vector<Savepoint> savepoints = {
      {"call-1", Lsn{10}, {}},     {"mine", Lsn{15}, {}},
      {"call-2", Lsn{20}, {}},     {"call-1-end", Lsn{25}, {}},
      {"call-2-end", Lsn{30}, {}}, {"call-3", Lsn{40}, {}}};
  EXPECT_EQ(SpanOf(savepoints, 1)->until->name, "call-2");
  EXPECT_EQ(SpanOf(savepoints, 2)->until->name, "call-2-end");
  EXPECT_EQ(SpanOf(savepoints, 3)->until, std::nullopt);
  EXPECT_FALSE(SpanOf(savepoints, 4).has_value());
  const std::vector<std::pair<uint64_t, uint64_t>> cases = {
      {5, 0}, {10, 1}, {17, 1}, {22, 2}, {27, 2}, {35, 0}, {45, 3}};
  for (const auto& [lsn, call] : cases) {
    EXPECT_EQ(CallAt(savepoints, Lsn{lsn}), call) << lsn;
  }
  EXPECT_EQ(LastCall(savepoints), 3u);
  EXPECT_EQ(WithoutCalls(savepoints).size(), 1u);
}

}  // namespace
}  // namespace txfs
