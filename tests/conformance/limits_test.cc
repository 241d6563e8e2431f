#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "policy/sources.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr const char* kTexts = "reason = \"too much\"\nsuggest = \"ask\"\n";

/// A policy of limits: of each the lines but id, reason and suggest. Their ids
/// are l0, l1, ...
std::shared_ptr<const policy::Policy> Limits(
    const std::vector<string>& limits) {
  string text = "schema = 1\n";
  for (size_t i = 0; i < limits.size(); ++i) {
    text += "[[limit]]\nid = \"l" + std::to_string(i) + "\"\n" + limits[i] +
            "\n" + kTexts;
  }
  auto policy = policy::Compile({{"limits.toml", text}});
  if (!policy) ADD_FAILURE() << policy.error().ToString();
  return policy ? *policy : nullptr;
}

class HandClock final : public Clock {
 public:
  [[nodiscard]] Timestamp Now() const override { return now_; }
  void Advance(int64_t seconds) { now_.sec += seconds; }

 private:
  Timestamp now_{.sec = 1'500'000'000, .nsec = 0};
};

string FileName(int number) { return "f" + std::to_string(number); }

/// Over a base of f0 ... f9, d/, and the names a and b of one file.
class LimitsTest : public ::testing::Test {
 protected:
  LimitsTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    for (int i = 0; i < 10; ++i) base_.File(FileName(i), "content");
    base_.Directory("d");
    base_.File("a", "linked");
    base_.HardLink("a", "b");
  }
  ~LimitsTest() override {
    if (driver_) EXPECT_OK(driver_->Remount());
  }

  void Start(const std::vector<string>& limits) {
    auto started = CoreDriver::Start(
        base_.root(), {.clock = &clock_, .policy = Limits(limits)});
    ASSERT_TRUE(started) << started.error().ToString();
    driver_ = std::move(*started);
  }
  CoreDriver& fs() { return *driver_; }

  void ExpectRefused(const Status& done, const string& rule = "l0") {
    ASSERT_FALSE(done);
    EXPECT_EQ(ErrnoName(done.error().code), "EDQUOT");
    EXPECT_EQ(done.error().kind, ErrorKind::kVetoed);
    EXPECT_EQ(done.error().rule, rule);
    EXPECT_EQ(done.error().message, "too much");
    EXPECT_EQ(done.error().hint, "ask");
  }
  void Remove(int from, int to) {
    for (int i = from; i < to; ++i) ASSERT_OK(fs().Unlink(FileName(i)));
  }
  /// The path of the last denial in the log.
  string LastDenied() {
    const auto denials = fs().workspace().ReadDenials();
    EXPECT_TRUE(denials && !denials->entries.empty());
    if (!denials || denials->entries.empty()) return "";
    return denials->entries.back().change.path;
  }
  CommitReport Commit(const CommitOptions& options = {}) {
    auto report = fs().workspace().Commit(options);
    EXPECT_TRUE(report) << report.error().ToString();
    return report ? *report : CommitReport();
  }

  TempDir scratch_;
  BaseTree base_;
  HandClock clock_;
  std::unique_ptr<CoreDriver> driver_;
};

// --- what was there and is removed -----------------------------------------

TEST_F(LimitsTest, RemovalsAreRefusedBeyondTheNumber) {
  Start({"of = \"base_removed\"\nmax = 3"});
  Remove(0, 3);
  ExpectRefused(fs().Unlink("f3"));
  EXPECT_EQ(fs().ReadFile("f3").value(), "content");
  ASSERT_OK(fs().WriteFile("f4", "changed"));
  ASSERT_OK(fs().WriteFile("new", "new"));
  EXPECT_OK(fs().Unlink("new"));
}

TEST_F(LimitsTest, ARefusalIsADenialInTheLog) {
  Start({"of = \"base_removed\"\nmax = 0"});
  ExpectRefused(fs().Unlink("f0"));
  const auto denials = fs().workspace().ReadDenials();
  ASSERT_TRUE(denials);
  ASSERT_EQ(denials->entries.size(), 1U);
  const Change& change = denials->entries[0].change;
  EXPECT_EQ(change.op, Op::kUnlink);
  EXPECT_EQ(change.path, "f0");
  EXPECT_EQ(change.result, EDQUOT);
  EXPECT_EQ(change.rule, "l0");
  EXPECT_EQ(change.reason, "too much");
  EXPECT_NE(change.policy, 0U);
}

TEST_F(LimitsTest, DirectoriesCount) {
  Start({"of = \"base_removed\"\nmax = 1"});
  ASSERT_OK(fs().Mkdir("new", 0755));
  ASSERT_OK(fs().Rmdir("new"));
  Remove(0, 1);
  ExpectRefused(fs().Rmdir("d"));
  EXPECT_OK(fs().Stat("d"));
}

TEST_F(LimitsTest, WhatIsReplacedByARenameIsRemoved) {
  Start({"of = \"base_removed\"\nmax = 1"});
  ASSERT_OK(fs().WriteFile("n0", "new"));
  ASSERT_OK(fs().WriteFile("n1", "new"));
  ASSERT_OK(fs().Rename("n0", "f0", 0));
  ExpectRefused(fs().Rename("n1", "f1", 0));
  EXPECT_EQ(fs().ReadFile("f1").value(), "content");
  EXPECT_EQ(fs().ReadFile("n1").value(), "new");
  // What the transaction made is not the base's, wherever it is.
  EXPECT_OK(fs().Rename("n1", "f0", 0));
}

TEST_F(LimitsTest, WhatIsRenamedIsNotRemoved) {
  Start({"of = \"base_removed\"\nmax = 1"});
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(fs().Rename(FileName(i), "d/" + FileName(i), 0));
  }
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(fs().Unlink("e/f0"));
  ExpectRefused(fs().Unlink("e/f1"));
}

TEST_F(LimitsTest, AFileOfSeveralNamesIsRemovedWithItsLast) {
  Start({"of = \"base_removed\"\nmax = 0"});
  ASSERT_OK(fs().Unlink("a"));
  ExpectRefused(fs().Unlink("b"));
  ASSERT_OK(fs().Link("f0", "l"));
  ASSERT_OK(fs().Unlink("f0"));
  ExpectRefused(fs().Unlink("l"));
}

TEST_F(LimitsTest, OnlyWhatItsPathsSayCounts) {
  Start(
      {"of = \"base_removed\"\nmax = 0\npath = \"f*\"\nunless = { path = "
       "[\"f0\", \"f1\"] }"});
  Remove(0, 2);
  ASSERT_OK(fs().Rmdir("d"));
  ExpectRefused(fs().Unlink("f2"));
  // It is the name in the base that counts.
  ASSERT_OK(fs().Rename("f3", "x", 0));
  ExpectRefused(fs().Unlink("x"));
}

TEST_F(LimitsTest, AFractionIsOfWhatTheBaseHas) {
  // f0 ... f9, a, b, d: 13.
  Start({"of = \"base_removed\"\nfraction = 0.4"});
  Remove(0, 5);
  ExpectRefused(fs().Unlink("f5"));
}

TEST_F(LimitsTest, OfTwoNumbersBothMustBeExceeded) {
  Start({"of = \"base_removed\"\nmax = 7\nfraction = 0.4"});
  Remove(0, 7);
  ExpectRefused(fs().Unlink("f7"));
}

TEST_F(LimitsTest, AnotherBaseIsCountedAnew) {
  Start({"of = \"base_removed\"\nfraction = 0.4"});
  Remove(0, 5);
  ExpectRefused(fs().Unlink("f5"));
  Commit();
  // Of the 8 that are left 3 may go.
  Remove(5, 8);
  ExpectRefused(fs().Unlink("f8"));
}

// --- what is made and written ----------------------------------------------

TEST_F(LimitsTest, WhatIsMadeCountsWhileItIsThere) {
  Start({"of = \"inodes_made\"\nmax = 2"});
  ASSERT_OK(fs().WriteFile("n0", ""));
  ASSERT_OK(fs().Mkdir("n1", 0755));
  ExpectRefused(fs().Symlink("f0", "n2"));
  ExpectRefused(fs().Mkfifo("n2", 0644));
  EXPECT_OK(fs().Link("f0", "n2"));
  ASSERT_OK(fs().Unlink("n0"));
  EXPECT_OK(fs().Symlink("f0", "n3"));
  ASSERT_OK(fs().Rename("n3", "n4", 0));
  ExpectRefused(fs().Mkdir("n5", 0755));
}

TEST_F(LimitsTest, ContentCountsWhileItIsThere) {
  Start({"of = \"bytes_written\"\nmax = \"100 KiB\""});
  const string content(60 << 10, 'x');
  ASSERT_OK(fs().WriteFile("n0", content));
  // Over itself it is no more than before.
  ASSERT_OK(fs().PatchFile("n0", 0, content));
  ASSERT_OK(fs().WriteFile("n1", ""));
  const auto refused = fs().PatchFile("n1", 0, content);
  ExpectRefused(refused);
  EXPECT_EQ(fs().ReadFile("n1").value(), "");
  ASSERT_OK(fs().Truncate("n0", 1000));
  EXPECT_OK(fs().PatchFile("n1", 0, content));
  ASSERT_OK(fs().Unlink("n1"));
  EXPECT_OK(fs().PatchFile("f0", 0, content));
}

TEST_F(LimitsTest, ContentOfAnOpenFileWithoutANameCounts) {
  Start({"of = \"bytes_written\"\nmax = \"100 KiB\""});
  const string content(60 << 10, 'x');
  const auto file = fs().Open("n0", O_RDWR | O_CREAT, 0644);
  ASSERT_OK(file);
  ASSERT_OK(fs().WriteAt(*file, 0, content));
  ASSERT_OK(fs().Unlink("n0"));
  ExpectRefused(fs().WriteFile("n1", content));
  const auto more = fs().WriteAt(*file, content.size(), content);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().rule, "l0");
  ASSERT_OK(fs().TruncateOf(*file, 0));
  const string other(50 << 10, 'y');
  ASSERT_OK(fs().WriteAt(*file, 0, other));
  EXPECT_EQ(fs().ReadAt(*file, 0, other.size()).value(), other);
  ASSERT_OK(fs().Close(*file));
  EXPECT_OK(fs().WriteFile("n1", content));
}

TEST_F(LimitsTest, ARefusalOfAFileWithoutANameHasTheLastOneThatItHad) {
  Start({"of = \"bytes_written\"\nmax = \"1 KiB\""});
  const string content(2 << 10, 'x');
  const auto last_refused = [&](Handle file) {
    EXPECT_FALSE(fs().WriteAt(file, 0, content));
    return LastDenied();
  };
  ASSERT_OK(fs().Mkdir("n", 0755));
  const auto made = fs().Open("n/made", O_RDWR | O_CREAT, 0644);
  const auto kept = fs().Open("n/kept", O_RDWR | O_CREAT, 0644);
  const auto base = fs().Open("f0", O_RDWR, 0);
  ASSERT_TRUE(made && kept && base);
  ASSERT_OK(fs().Unlink("n/made"));
  ASSERT_OK(fs().Rename("f0", "n/moved", 0));
  ASSERT_OK(fs().Unlink("n/moved"));
  EXPECT_EQ(last_refused(*made), "n/made");
  EXPECT_EQ(last_refused(*base), "n/moved");
  // A discard takes names away, and gives names back.
  ASSERT_OK(fs().workspace().Discard());
  EXPECT_EQ(last_refused(*made), "n/made");
  EXPECT_EQ(last_refused(*kept), "n/kept");
  EXPECT_EQ(last_refused(*base), "f0");
  for (const Handle file : {*made, *kept, *base}) {
    EXPECT_OK(fs().Close(file));
  }
}

TEST_F(LimitsTest, ARefusalHasTheNameThatARollbackTook) {
  Start({"of = \"bytes_written\"\nmax = \"1 KiB\""});
  ASSERT_OK(fs().workspace().MakeSavepoint("s"));
  const auto file = fs().Open("n0", O_RDWR | O_CREAT, 0644);
  ASSERT_OK(fs().Mkdir("made", 0755));
  const auto below = fs().Open("made/f", O_RDWR | O_CREAT, 0644);
  const auto in_moved = fs().Open("d/f", O_RDWR | O_CREAT, 0644);
  ASSERT_TRUE(file && below && in_moved);
  ASSERT_OK(fs().Rename("n0", "n1", 0));
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(fs().workspace().Rollback("s"));
  const string content(2 << 10, 'x');
  const std::vector<std::pair<Handle, string>> taken = {
      {*file, "n1"}, {*below, "made/f"}, {*in_moved, "e/f"}};
  for (const auto& [handle, path] : taken) {
    EXPECT_FALSE(fs().WriteAt(handle, 0, content));
    EXPECT_EQ(LastDenied(), path);
    EXPECT_OK(fs().Close(handle));
  }
}

TEST_F(LimitsTest, WhatIsDoneToAFileWithoutANameMakesNothing) {
  Start({"of = \"inodes_made\"\nmax = 1"});
  const auto file = fs().Open("n0", O_RDWR | O_CREAT, 0644);
  ASSERT_OK(file);
  ASSERT_OK(fs().Unlink("n0"));
  EXPECT_OK(fs().WriteAt(*file, 0, "a"));
  EXPECT_OK(fs().WriteAt(*file, 1, "b"));
  EXPECT_OK(fs().WriteFile("n1", ""));
  ASSERT_OK(fs().Close(*file));
}

TEST_F(LimitsTest, CopiesAreWritten) {
  Start({"of = \"bytes_written\"\nmax = 10"});
  const auto from = fs().Open("f0", O_RDONLY, 0);
  const auto to = fs().Open("n", O_WRONLY | O_CREAT, 0644);
  ASSERT_TRUE(from && to);
  ASSERT_OK(fs().CopyRange(*from, 0, *to, 0, 7));
  const auto refused = fs().CopyRange(*from, 0, *to, 7, 7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().rule, "l0");
  // Nothing is stored for a hole.
  EXPECT_OK(fs().Allocate(*to, 0, 0, 1 << 20));
  ASSERT_OK(fs().Close(*from));
  ASSERT_OK(fs().Close(*to));
}

// --- how the count goes on -------------------------------------------------

TEST_F(LimitsTest, ARemountKeepsTheCount) {
  Start({"of = \"base_removed\"\nmax = 3", "of = \"inodes_made\"\nmax = 2",
         "of = \"bytes_written\"\nmax = 10"});
  Remove(0, 3);
  ASSERT_OK(fs().WriteFile("n0", "12345678"));
  ASSERT_OK(fs().WriteFile("n1", ""));
  ASSERT_OK(fs().Remount());
  ExpectRefused(fs().Unlink("f3"), "l0");
  ExpectRefused(fs().Mkdir("n2", 0755), "l1");
  ExpectRefused(fs().PatchFile("n1", 0, "abc"), "l2");
  EXPECT_OK(fs().PatchFile("n1", 0, "ab"));
}

TEST_F(LimitsTest, ARollbackGivesBack) {
  Start({"of = \"base_removed\"\nmax = 3", "of = \"inodes_made\"\nmax = 1",
         "of = \"bytes_written\"\nmax = 10"});
  Remove(0, 1);
  ASSERT_OK(fs().MakeSavepoint("s"));
  Remove(1, 3);
  ASSERT_OK(fs().WriteFile("n0", "12345678"));
  ASSERT_OK(fs().Rollback("s"));
  Remove(1, 3);
  ExpectRefused(fs().Unlink("f3"), "l0");
  ASSERT_OK(fs().WriteFile("n0", "1234567890"));
  ExpectRefused(fs().Mkdir("n1", 0755), "l1");
}

TEST_F(LimitsTest, TheEndOfATransactionIsABeginning) {
  Start({"of = \"base_removed\"\nmax = 2", "of = \"bytes_written\"\nmax = 10"});
  Remove(0, 2);
  ASSERT_OK(fs().WriteFile("n0", "1234567890"));
  ExpectRefused(fs().Unlink("f2"));
  ASSERT_OK(fs().Discard());
  Remove(0, 2);
  ASSERT_OK(fs().WriteFile("n0", "1234567890"));
  ExpectRefused(fs().Unlink("f2"));
  ASSERT_OK(fs().Commit());
  Remove(2, 4);
  ASSERT_OK(fs().WriteFile("n1", "1234567890"));
  ExpectRefused(fs().Unlink("f4"));
}

TEST_F(LimitsTest, APartThatEndsIsGivenBack) {
  Start({"of = \"base_removed\"\nmax = 3"});
  Remove(0, 3);
  Commit({.message = {}, .paths = {"f0"}});
  ASSERT_OK(fs().workspace().DiscardPart({"f1"}));
  Remove(3, 5);
  ExpectRefused(fs().Unlink("f5"));
}

TEST_F(LimitsTest, AnotherPolicyHoldsForWhatWasDone) {
  Start({});
  Remove(0, 3);
  fs().workspace().UsePolicy(Limits({"of = \"base_removed\"\nmax = 3"}));
  ExpectRefused(fs().Unlink("f3"));
  fs().workspace().UsePolicy(nullptr);
  EXPECT_OK(fs().Unlink("f3"));
}

TEST_F(LimitsTest, WhatIsOnlyNotedIsDone) {
  Start({"of = \"base_removed\"\nmax = 1\naction = \"audit\""});
  Remove(0, 3);
  std::vector<string> noted;
  ASSERT_OK(fs().workspace().ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    noted.push_back(entry.change.rule);
    return true;
  }));
  EXPECT_EQ(noted, (std::vector<string>{"", "l0", "l0"}));
}

TEST_F(LimitsTest, AWindowForgets) {
  Start({"of = \"base_removed\"\nmax = 2\nwindow = 10",
         "of = \"inodes_made\"\nmax = 2\nwindow = 10",
         "of = \"bytes_written\"\nmax = 10\nwindow = 10"});
  Remove(0, 2);
  ExpectRefused(fs().Unlink("f2"), "l0");
  // In a window counts what was done, whatever became of it.
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(fs().Mkdir("n", 0755));
    ASSERT_OK(fs().Rmdir("n"));
  }
  ExpectRefused(fs().Mkdir("n", 0755), "l1");
  ASSERT_OK(fs().PatchFile("f5", 0, "123456"));
  ExpectRefused(fs().PatchFile("f5", 0, "123456"), "l2");
  clock_.Advance(9);
  ExpectRefused(fs().Unlink("f2"), "l0");
  clock_.Advance(3);
  Remove(2, 4);
  EXPECT_OK(fs().Mkdir("n", 0755));
  EXPECT_OK(fs().PatchFile("f5", 0, "123456"));
  ExpectRefused(fs().Unlink("f4"), "l0");
}

// --- at the commit ---------------------------------------------------------

constexpr const char* kAtCommit =
    "of = \"base_removed\"\nmax = 3\nat = \"commit\"";

TEST_F(LimitsTest, ACommitOfTooMuchDoesNothing) {
  Start({kAtCommit});
  Remove(0, 4);
  const CommitReport report = Commit();
  EXPECT_FALSE(report.committed());
  ASSERT_EQ(report.limits.size(), 1U);
  const LimitExcess& limit = report.limits[0];
  EXPECT_TRUE(limit.stops());
  EXPECT_EQ(limit.id, "l0");
  EXPECT_EQ(limit.count, 4U);
  EXPECT_EQ(limit.total, std::nullopt);
  EXPECT_EQ(limit.allowance, "3");
  EXPECT_EQ(limit.reason, "too much");
  struct stat st{};
  EXPECT_EQ(lstat((base_.root() + "/f0").c_str(), &st), 0);
  EXPECT_ERRNO(fs().Stat("f0"), ENOENT);
  EXPECT_EQ(fs().workspace().GetStatus().value().changes, 4U);
}

TEST_F(LimitsTest, WhoCommitsMayAcceptALimit) {
  Start({kAtCommit, "of = \"inodes_made\"\nmax = 0\nat = \"commit\""});
  Remove(0, 4);
  ASSERT_OK(fs().WriteFile("n", ""));
  CommitReport report = Commit({.accepted = {"l0"}});
  EXPECT_FALSE(report.committed());
  ASSERT_EQ(report.limits.size(), 2U);
  EXPECT_FALSE(report.limits[0].stops());
  EXPECT_TRUE(report.limits[1].stops());
  report = Commit({.accepted = {"l0", "l1"}});
  EXPECT_TRUE(report.committed());
  EXPECT_TRUE(report.limits[0].accepted);
  EXPECT_EQ(Commit().nothing, true);
}

TEST_F(LimitsTest, OnlyALimitOfCommitsCanBeAccepted) {
  Start({kAtCommit, "of = \"inodes_made\"\nmax = 5"});
  Remove(0, 1);
  for (const char* id : {"l1", "l2", ""}) {
    const auto report = fs().workspace().Commit({.accepted = {id}});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().kind, ErrorKind::kUsage);
    const auto plan = fs().workspace().PlanOnly({.accepted = {id}});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().ToString(), report.error().ToString());
  }
  EXPECT_OK(fs().workspace().PlanOnly({.accepted = {"l0"}}));
  EXPECT_TRUE(Commit({.accepted = {"l0"}}).committed());
  // Of nothing, nothing is judged.
  EXPECT_TRUE(Commit({.accepted = {"l2"}}).nothing);
  EXPECT_OK(fs().workspace().PlanOnly({.accepted = {"l2"}}));
}

TEST_F(LimitsTest, ACommitThatIsOnlyNotedIsDone) {
  Start({string(kAtCommit) + "\naction = \"audit\""});
  Remove(0, 4);
  const CommitReport report = Commit();
  EXPECT_TRUE(report.committed());
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_FALSE(report.limits[0].refuses);
}

TEST_F(LimitsTest, ACommitRemovesWhatIsGoneInTheEnd) {
  Start({kAtCommit});
  for (int i = 0; i < 8; ++i) {
    ASSERT_OK(fs().Unlink(FileName(i)));
    ASSERT_OK(fs().WriteFile(FileName(i), "made anew"));
  }
  ASSERT_OK(fs().Rename("f8", "d/f8", 0));
  ASSERT_OK(fs().Rename("f9", "f0", 0));
  Remove(1, 3);
  EXPECT_TRUE(Commit().committed());
}

TEST_F(LimitsTest, ACommitOfAPartCountsThePart) {
  Start({kAtCommit, "of = \"bytes_written\"\nmax = 10\nat = \"commit\"",
         "of = \"inodes_made\"\nmax = 1\nat = \"commit\""});
  Remove(0, 5);
  ASSERT_OK(fs().WriteFile("n0", "1234567890"));
  ASSERT_OK(fs().WriteFile("n1", "1234567890"));
  const CommitReport whole = Commit();
  ASSERT_EQ(whole.limits.size(), 3U);
  EXPECT_EQ(whole.limits[0].count, 5U);
  EXPECT_EQ(whole.limits[1].count, 20U);
  EXPECT_EQ(whole.limits[2].count, 2U);
  const CommitReport part =
      Commit({.message = {}, .paths = {"f0", "f1", "f2", "n0"}});
  EXPECT_TRUE(part.committed());
  EXPECT_TRUE(part.limits.empty());
  EXPECT_TRUE(Commit().committed());
}

TEST_F(LimitsTest, ADirectoryThatGoesCountsWithAllThatIsInIt) {
  for (int i = 0; i < 4; ++i) base_.File("d/" + FileName(i), "content");
  Start({kAtCommit});
  ASSERT_OK(fs().RemoveRecursively("d"));
  CommitReport report = Commit();
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_EQ(report.limits[0].count, 5U);
  report = Commit({.message = {}, .paths = {"d"}});
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_EQ(report.limits[0].count, 5U);
}

TEST_F(LimitsTest, ADirectoryThatGoesCountsWithWhatOthersMadeInIt) {
  Start({kAtCommit});
  ASSERT_OK(fs().RemoveRecursively("d"));
  for (int i = 0; i < 4; ++i) base_.File("d/" + FileName(i), "content");
  const CommitReport report =
      Commit({.conflicts = {.on_conflict = OnConflict::kMine}});
  EXPECT_TRUE(report.conflicts.empty());
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_EQ(report.limits[0].count, 5U);
}

TEST_F(LimitsTest, APlanSaysWhatACommitWouldExceed) {
  Start({"of = \"base_removed\"\nmax = 3\nfraction = 0.3\nat = \"commit\""});
  Remove(0, 4);
  const auto plan = fs().workspace().PlanOnly({});
  ASSERT_OK(plan);
  ASSERT_EQ(plan->limits.size(), 1U);
  EXPECT_EQ(plan->limits[0].count, 4U);
  EXPECT_EQ(plan->limits[0].total, 13U);
  EXPECT_TRUE(plan->limits[0].stops());
  EXPECT_FALSE(plan->steps.empty());
  const auto accepted = fs().workspace().PlanOnly({.accepted = {"l0"}});
  ASSERT_OK(accepted);
  ASSERT_EQ(accepted->limits.size(), 1U);
  EXPECT_TRUE(accepted->limits[0].accepted);
  EXPECT_FALSE(accepted->limits[0].stops());
}

TEST_F(LimitsTest, AFractionIsJudgedAtTheCommit) {
  Start({"of = \"base_removed\"\nmax = 3\nfraction = 0.5\nat = \"commit\""});
  Remove(0, 6);
  EXPECT_TRUE(Commit().committed());
}

}  // namespace
}  // namespace txfs::testing
