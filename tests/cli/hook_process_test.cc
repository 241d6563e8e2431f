#include "cli/daemon/hook_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace txfs::cli {
namespace {

using ::testing::HasSubstr;
using Verdict = HookProcess::Verdict;
using std::chrono::milliseconds;

/// Signals as soon as the wait begins.
class Signalled final : public LongWait {
 public:
  explicit Signalled(bool ends) : ends_(ends) {}
  bool Begin(std::function<void()> on_signal) override {
    on_signal();
    return true;
  }
  void End() override {}
  [[nodiscard]] bool HasToEnd() const override { return ends_; }

 private:
  const bool ends_;
};

/// Tells how many began to wait.
class Counting final : public LongWait {
 public:
  bool Begin(std::function<void()>) override {
    ++waiting;
    return true;
  }
  void End() override {}
  [[nodiscard]] bool HasToEnd() const override { return false; }

  std::atomic<size_t> waiting = 0;
};

class HookProcessTest : public ::testing::Test {
 protected:
  HookProcessTest() { ::signal(SIGPIPE, SIG_IGN); }  // as in the daemon

  /// A shell that runs `script`, in which $id is that of the question after
  /// `next` has read it.
  void Run(const std::string& script) {
    settings_.command = {
        "/bin/sh", "-c",
        "next() { read -r line || exit; id=${line#*'\"id\":'}; "
        "id=${id%%[,\\}]*}; }\n"
        "say() { echo \"{\\\"id\\\":$id,\\\"verdict\\\":\\\"$1\\\"}\"; }\n" +
            script};
  }
  Result<HookProcess::Reply> Ask(const std::string& path = "a",
                                 LongWait* wait = nullptr) {
    return hook_.Ask(settings_, {{"path", path}}, HookProcess::Origin::kProcess,
                     wait);
  }
  using Asked = std::vector<std::future<Result<HookProcess::Reply>>>;
  /// Write-backs that ask about `path`, all of which wait for an answer.
  Asked AskWriteBacks(const std::string& path, size_t count) {
    Asked asked;
    const size_t before = counting_.waiting;
    for (size_t i = 0; i < count; ++i) {
      asked.push_back(std::async(std::launch::async, [this, path] {
        return hook_.Ask(settings_, {{"path", path}},
                         HookProcess::Origin::kWriteBack, &counting_);
      }));
    }
    while (counting_.waiting < before + count) std::this_thread::yield();
    return asked;
  }
  void Refuses(const std::string& part) {
    const auto reply = Ask();
    ASSERT_FALSE(reply);
    EXPECT_THAT(reply.error().ToString(), HasSubstr(part));
  }
  void Says(Verdict verdict) {
    const auto reply = Ask();
    ASSERT_TRUE(reply) << reply.error().ToString();
    EXPECT_EQ(reply->verdict, verdict);
  }

  policy::HookSettings settings_{
      .command = {}, .timeout = std::chrono::minutes(5), .place = {}};
  Counting counting_;
  HookProcess hook_;
};

TEST_F(HookProcessTest, StaysAndAnswersOneByOne) {
  Run("for v in allow deny ask; do next; say $v; done; next");
  Says(Verdict::kAllow);
  Says(Verdict::kDeny);
  Says(Verdict::kAsk);
}

TEST_F(HookProcessTest, TellsTheReason) {
  Run("next; echo \"{\\\"id\\\":$id,\\\"verdict\\\":\\\"deny\\\","
      "\\\"reason\\\":\\\"no\\\"}\"");
  const auto reply = Ask();
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->reason, "no");
}

TEST_F(HookProcessTest, ACrashIsNoAnswerAndTheNextStartsAnew) {
  Run("next; case $line in *crash*) exit 3;; esac; say allow; next");
  EXPECT_FALSE(Ask("crash"));
  Says(Verdict::kAllow);
}

TEST_F(HookProcessTest, OneThatEndsBetweenQuestionsIsStartedAnew) {
  Run("next; say allow");
  int answers = 0;
  // One that had not ended yet when it was looked at gives no answer, and the
  // next one starts.
  for (int i = 0; i < 20; ++i) answers += Ask() ? 1 : 0;
  EXPECT_GE(answers, 10);
}

TEST_F(HookProcessTest, SilenceIsNoAnswer) {
  settings_.timeout = milliseconds(1);
  Run("next; next; say allow");
  Refuses("did not answer in time");
}

TEST_F(HookProcessTest, OneThatDoesNotReadIsNoneEither) {
  settings_.timeout = milliseconds(1);
  Run("exec tail -f /dev/null");
  const auto reply = Ask(std::string(1 << 20, 'x'));
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().ToString(), HasSubstr("in time"));
}

TEST_F(HookProcessTest, NonsenseIsNoAnswer) {
  for (const char* nonsense :
       {"echo hello", "echo", "say maybe", "id=99; say allow", "echo '[1]'",
        "echo '{\"verdict\":\"allow\"}'",
        R"(echo "{\"id\":$id,\"verdict\":\"deny\",\"verdict\":\"allow\"}")",
        "printf '\\377\\n'", "head -c 100000 /dev/zero"}) {
    Run(std::string("next; ") + nonsense + "; next");
    Refuses("is not valid");
  }
}

TEST_F(HookProcessTest, WhatIsMissingIsNoAnswer) {
  settings_.command = {"/nonexistent/hook"};
  Refuses("the hook");
  Run("next; say allow");
  Says(Verdict::kAllow);
}

TEST_F(HookProcessTest, OtherSettingsStartAnother) {
  Run("while next; do say allow; done");
  Says(Verdict::kAllow);
  Run("while next; do say deny; done");
  Says(Verdict::kDeny);
}

TEST_F(HookProcessTest, HasNoDescriptorsOfOurs) {
  Run("next; [ -e /proc/$$/fd/3 ] && say deny || say allow");
  const UniqueFd open(::dup(0));
  Says(Verdict::kAllow);
}

TEST_F(HookProcessTest, ASignalEndsTheWait) {
  Run("next; next");
  Signalled wait(/*ends=*/true);
  const auto reply = Ask("a", &wait);
  ASSERT_FALSE(reply);
  EXPECT_THAT(reply.error().ToString(), HasSubstr("a signal came"));
}

TEST_F(HookProcessTest, ASignalThatIsSurvivedDoesNot) {
  Run("next; say allow; next");
  Signalled wait(/*ends=*/false);
  const auto reply = Ask("a", &wait);
  ASSERT_TRUE(reply) << reply.error().ToString();
  EXPECT_EQ(reply->verdict, Verdict::kAllow);
}

TEST_F(HookProcessTest, SuspendEndsWaitsAndSoManyWaitAtMost) {
  constexpr auto kTooMany =
      static_cast<ptrdiff_t>(2 * HookProcess::kMaxWaiting);
  Run("next; next");
  Asked asked;
  for (size_t i = 0; i < 3 * HookProcess::kMaxWaiting; ++i) {
    asked.push_back(std::async(std::launch::async, [this] { return Ask(); }));
  }
  // Those that are too many end at once, the others with this.
  const auto is_ready = [](const auto& one) {
    return one.wait_for(milliseconds(0)) == std::future_status::ready;
  };
  while (std::ranges::count_if(asked, is_ready) < kTooMany) {
    std::this_thread::yield();
  }
  hook_.Suspend();
  ptrdiff_t too_many = 0;
  for (auto& one : asked) {
    const auto reply = one.get();
    ASSERT_FALSE(reply);
    too_many += reply.error().ToString().contains("too many") ? 1 : 0;
  }
  EXPECT_EQ(too_many, kTooMany);
  Refuses("the wait ended");
  hook_.Resume();
  Run("next; say allow");
  Says(Verdict::kAllow);
}

/// The kernel sends a file in many parts at once, and of many files, too.
TEST_F(HookProcessTest, WriteBacksOfAFileAreOneQuestionAndNoneIsTooMany) {
  constexpr size_t kMany = 2 * HookProcess::kMaxWaiting;
  const std::string go =
      ::testing::TempDir() + "/txfs-hook-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(go.c_str(), 0600), 0);
  // It answers the second question of a path with no.
  Run("seen=; while next; do path=${line#*'\"path\":\"'}; path=${path%%'\"'*}; "
      "[ -n \"$seen\" ] || : <" +
      go +
      "; case $seen in *\"<$path>\"*) say deny;; "
      "*) say allow;; esac; seen=\"$seen<$path>\"; done");
  Asked asked = AskWriteBacks("file", kMany);
  for (size_t i = 0; i < kMany; ++i) {
    auto other = AskWriteBacks("file" + std::to_string(i), 1);
    asked.push_back(std::move(other.front()));
  }
  {
    std::ofstream release(go);
  }
  for (auto& one : asked) {
    const auto reply = one.get();
    ASSERT_TRUE(reply) << reply.error().ToString();
    EXPECT_EQ(reply->verdict, Verdict::kAllow);
  }
  ::unlink(go.c_str());
  // Those that come later are another one.
  EXPECT_EQ(AskWriteBacks("file", 1).front().get()->verdict, Verdict::kDeny);
}

TEST_F(HookProcessTest, SuspendEndsTheWaitOfWriteBacks) {
  Run("next; next");
  Asked asked = AskWriteBacks("file", 3);
  hook_.Suspend();
  for (auto& one : asked) EXPECT_FALSE(one.get());
  hook_.Resume();
}

}  // namespace
}  // namespace txfs::cli
