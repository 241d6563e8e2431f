#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "journal/denial_table.h"
#include "policy/load.h"
#include "policy/sources.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr const char* kDenyingRules = R"(
schema = 1

[[fs]]
id = "kept"
path = "kept/"
reason = "it is to stay"
suggest = "write elsewhere"

[[fs]]
id = "watched"
path = "watched"
action = "audit"
reason = "somebody wants to know"
suggest = "go on"
)";

std::shared_ptr<const policy::Policy> Rules() {
  std::vector<policy::Loaded> files;
  auto loaded = policy::Load(kDenyingRules, "rules.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  files.push_back(std::move(*loaded));
  auto policy = policy::Combine(std::move(files));
  EXPECT_TRUE(policy) << policy.error().ToString();
  return *policy;
}

class PolicyDenialsTest : public ::testing::Test {
 protected:
  PolicyDenialsTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    base_.File("kept/file", "old");
    base_.File("free", "old");
    base_.File("watched", "old");
    base_.SetTimes();
    auto started = CoreDriver::Start(base_.root(), {.policy = Rules()});
    EXPECT_TRUE(started) << started.error().ToString();
    driver_ = std::move(*started);
  }

  CoreDriver& fs() { return *driver_; }
  Workspace& workspace() { return driver_->workspace(); }
  void Refused(int times = 1) {
    for (int i = 0; i < times; ++i) {
      const Status done = fs().Unlink("kept/file");
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, EPERM);
    }
  }
  Denials Read() {
    auto denials = workspace().ReadDenials();
    EXPECT_TRUE(denials) << denials.error().ToString();
    return denials ? *std::move(denials) : Denials();
  }
  std::vector<RuleCount> InStatus() {
    const auto status = workspace().GetStatus();
    EXPECT_TRUE(status) << status.error().ToString();
    return status ? status->denied : std::vector<RuleCount>();
  }
  /// Of the newest transaction that ended.
  std::vector<RuleCount> InHistory() {
    const auto all = workspace().store().history().ReadAll();
    EXPECT_TRUE(all) << all.error().ToString();
    return all->empty() ? std::vector<RuleCount>() : all->back().denied;
  }
  static std::vector<RuleCount> Kept(uint64_t count) {
    return {{"kept", count}};
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(PolicyDenialsTest, TellWhatTheRuleSays) {
  Refused(2);
  ASSERT_FALSE(fs().Rename("free", "kept/free", 0));
  const Denials denials = Read();
  ASSERT_EQ(denials.entries.size(), 2U);
  const LogEntry& unlinked = denials.entries[0];
  EXPECT_EQ(unlinked.count, 2U);
  EXPECT_EQ(unlinked.change.path, "kept/file");
  EXPECT_EQ(unlinked.change.rule, "kept");
  EXPECT_EQ(unlinked.change.reason, "it is to stay");
  EXPECT_EQ(unlinked.change.suggest, "write elsewhere");
  EXPECT_NE(unlinked.change.policy, 0U);
  EXPECT_EQ(denials.entries[1].change.new_path, "kept/free");
  EXPECT_EQ(InStatus(), Kept(3));
}

TEST_F(PolicyDenialsTest, AreOnlyWhatAPolicyRefused) {
  EXPECT_TRUE(fs().WriteFile("watched", "new"));
  EXPECT_FALSE(fs().Mkdir("watched", 0755));
  EXPECT_FALSE(fs().Unlink("none"));
  EXPECT_TRUE(Read().entries.empty());
  EXPECT_TRUE(InStatus().empty());
}

TEST_F(PolicyDenialsTest, SurviveARemount) {
  Refused(3);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(fs().Remount());
    EXPECT_EQ(InStatus(), Kept(3));
    ASSERT_EQ(Read().entries.size(), 1U);
    EXPECT_EQ(Read().entries[0].change.reason, "it is to stay");
  }
}

TEST_F(PolicyDenialsTest, StayWhenChangesAreTakenBack) {
  ASSERT_TRUE(workspace().MakeSavepoint("before"));
  ASSERT_TRUE(fs().WriteFile("free", "new"));
  Refused();
  ASSERT_TRUE(workspace().Rollback("before"));
  EXPECT_EQ(InStatus(), Kept(1));
  ASSERT_TRUE(fs().WriteFile("free", "new"));
  ASSERT_TRUE(workspace().DiscardPart({"free"}));
  EXPECT_EQ(InStatus(), Kept(1));
  Refused();
  EXPECT_EQ(Read().entries[0].count, 2U);
}

TEST_F(PolicyDenialsTest, ACommitSaysThemAndTheNextTransactionHasNone) {
  ASSERT_TRUE(fs().WriteFile("free", "new"));
  Refused(2);
  const auto committed = workspace().Commit({});
  ASSERT_TRUE(committed) << committed.error().ToString();
  EXPECT_EQ(committed->denied, Kept(2));
  EXPECT_EQ(InHistory(), Kept(2));
  EXPECT_TRUE(InStatus().empty());
}

TEST_F(PolicyDenialsTest, ACommitOfAPartSaysThemAndTheyStay) {
  ASSERT_TRUE(fs().WriteFile("free", "new"));
  Refused(2);
  const auto committed = workspace().Commit({.paths = {"free"}});
  ASSERT_TRUE(committed) << committed.error().ToString();
  EXPECT_EQ(committed->denied, Kept(2));
  EXPECT_EQ(InHistory(), Kept(2));
  EXPECT_EQ(InStatus(), Kept(2));
}

TEST_F(PolicyDenialsTest, ACommitOfNothingSaysThem) {
  Refused();
  const auto committed = workspace().Commit({});
  ASSERT_TRUE(committed) << committed.error().ToString();
  EXPECT_TRUE(committed->nothing);
  EXPECT_EQ(committed->denied, Kept(1));
}

TEST_F(PolicyDenialsTest, ADiscardIsMarked) {
  Refused(4);
  ASSERT_TRUE(workspace().Discard());
  EXPECT_EQ(InHistory(), Kept(4));
  EXPECT_TRUE(InStatus().empty());
}

TEST_F(PolicyDenialsTest, AFloodIsBounded) {
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_FALSE(fs().Mkdir("kept/" + std::to_string(i), 0755));
  }
  const Denials denials = Read();
  EXPECT_EQ(denials.entries.size(), DenialTable::kMaxEntries);
  EXPECT_EQ(denials.Dropped(), 10'000 - DenialTable::kMaxEntries);
  EXPECT_EQ(InStatus(), Kept(10'000));
}

}  // namespace
}  // namespace txfs::testing
