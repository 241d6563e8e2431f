#include "fs/veto/approver.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

constexpr const char* kRules = R"(
schema = 1

[[fs]]
id = "asked"
path = "asked/"
action = "ask"
reason = "somebody is to know"
suggest = "wait"

[[fs]]
id = "also-asked"
path = "also/"
action = "ask"
reason = "somebody else is to know"
suggest = "wait"

[[fs]]
id = "kept"
path = "kept/"
reason = "it is to stay"
suggest = "write elsewhere"
)";

/// Answers as it is told to, and does what it is told to meanwhile.
class ScriptedApprover final : public Approver {
 public:
  enum class Answer { kYes, kNo };

  Status Decide(const Caller&, std::span<const Question> questions) override {
    for (const Question& question : questions) {
      std::string names;
      for (const TouchedName& name : question.names) names += " " + name.path;
      asked_.push_back(question.rule->id + ":" + names);
    }
    if (meanwhile_) std::exchange(meanwhile_, nullptr)();
    switch (answer_) {
      case Answer::kYes:
        return {};
      case Answer::kNo:
        return Veto(*questions.front().rule,
                    questions.front().names.front().path);
    }
    return {};
  }

  void Say(Answer answer) { answer_ = answer; }
  void Meanwhile(std::function<void()> work) { meanwhile_ = std::move(work); }
  [[nodiscard]] const std::vector<std::string>& asked() const { return asked_; }

 private:
  Answer answer_ = Answer::kYes;
  std::function<void()> meanwhile_;
  std::vector<std::string> asked_;  ///< rule and names of each question
};

class ApproverTest : public ::testing::Test {
 protected:
  using Answer = ScriptedApprover::Answer;
  using Asked = std::vector<std::string>;

  ApproverTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    base_.File("asked/file", "old");
    base_.File("asked/other", "other");
    base_.File("also/file", "old");
    base_.File("kept/file", "old");
    base_.File("free/file", "old");
  }

  void Start(Approver* approver) {
    auto started = CoreDriver::Start(base_.root(), {.approver = approver});
    ASSERT_OK(started);
    driver_ = std::move(*started);
    ASSERT_OK(fs().UsePolicy(kRules));
  }
  void Start() { Start(&approver_); }
  CoreDriver& fs() { return *driver_; }
  /// What the log has of refusals: rule and path.
  Asked Denied() {
    Asked denied;
    const auto refused = fs().ReadRefused();
    EXPECT_OK(refused);
    if (!refused) return denied;
    for (const Refused& each : *refused) {
      denied.push_back(each.rule + ": " + each.path);
    }
    return denied;
  }

  TempDir scratch_;
  BaseTree base_;
  ScriptedApprover approver_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(ApproverTest, WithAYesTheOperationIsDone) {
  Start();
  EXPECT_OK(fs().Unlink("asked/file"));
  EXPECT_ERRNO(fs().Stat("asked/file"), ENOENT);
  EXPECT_EQ(approver_.asked(), Asked({"asked: asked/file"}));
  EXPECT_EQ(Denied(), Asked());
}

TEST_F(ApproverTest, WithANoNothingHappensAndTheLogSaysWhy) {
  Start();
  approver_.Say(Answer::kNo);
  EXPECT_ERRNO(fs().Unlink("asked/file"), EPERM);
  EXPECT_ERRNO(fs().Truncate("asked/file", 0), EPERM);
  EXPECT_ERRNO(fs().Mkdir("asked/new", 0755), EPERM);
  EXPECT_EQ(fs().ReadFile("asked/file"), "old");
  EXPECT_ERRNO(fs().Stat("asked/new"), ENOENT);
  EXPECT_EQ(Denied(), Asked({"asked: asked/file", "asked: asked/file",
                             "asked: asked/new"}));
}

TEST_F(ApproverTest, WithNobodyToAskTheAnswerIsNo) {
  Start(nullptr);
  EXPECT_ERRNO(fs().Unlink("asked/file"), EPERM);
  EXPECT_OK(fs().Stat("asked/file"));
}

TEST_F(ApproverTest, NobodyIsAskedAboutWhatIsRefusedAnyhow) {
  Start();
  EXPECT_ERRNO(fs().Rename("asked/file", "kept/new", 0), EPERM);
  EXPECT_EQ(approver_.asked(), Asked());
}

/// The one name in `also` is that of what is replaced, and of what comes.
TEST_F(ApproverTest, OneOperationMayHaveSeveralQuestions) {
  Start();
  EXPECT_OK(fs().Rename("asked/file", "also/file", 0));
  EXPECT_EQ(approver_.asked(),
            Asked({"asked: asked/file", "also-asked: also/file also/file"}));
}

TEST_F(ApproverTest, OthersGoOnWhileOneWaits) {
  Start();
  approver_.Meanwhile([this] {
    EXPECT_OK(fs().WriteFile("free/file", "new"));
    EXPECT_OK(fs().Rename("free/file", "free/moved", 0));
    EXPECT_EQ(fs().ReadFile("asked/file"), "old");
  });
  EXPECT_OK(fs().Unlink("asked/file"));
  EXPECT_EQ(fs().ReadFile("free/moved"), "new");
}

TEST_F(ApproverTest, WhatIsThereAfterTheAnswerIsJudgedAnew) {
  Start();
  approver_.Meanwhile(
      [this] { EXPECT_OK(fs().Rename("asked/file", "asked/other", 0)); });
  EXPECT_ERRNO(fs().Unlink("asked/file"), ENOENT);
  EXPECT_EQ(fs().ReadFile("asked/other"), "old");
}

/// The yes was to one name of the file, and it has got another one.
TEST_F(ApproverTest, AnAnswerIsToTheNamesThatWereAskedAbout) {
  Start();
  approver_.Meanwhile(
      [this] { EXPECT_OK(fs().Link("asked/file", "also/linked")); });
  EXPECT_OK(fs().Truncate("asked/file", 1));
  // The second and third are about the link.
  EXPECT_EQ(approver_.asked(),
            Asked({"asked: asked/file", "asked: asked/file",
                   "also-asked: also/linked", "also-asked: also/linked"}));
  EXPECT_EQ(fs().ReadFile("also/linked"), "o");
}

}  // namespace
}  // namespace txfs::testing
