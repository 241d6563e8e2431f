#include "fs/veto/approval_queue.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace txfs {
namespace {

using Answer = ApprovalQueue::Answer;
using std::chrono::milliseconds;

/// Lets its thread wait, and sends it a signal when the test says so.
class FakeWait final : public LongWait {
 public:
  bool Begin(std::function<void()> on_signal) override {
    on_signal_ = std::move(on_signal);
    begun_ = true;
    if (at_once_) on_signal_();
    return allowed_;
  }
  void End() override { ++ended_; }
  [[nodiscard]] bool HasToEnd() const override {
    ++asked_;
    return has_to_end_;
  }

  /// One that ends the process, or not.
  void Signal(bool ends = true) {
    while (!begun_) std::this_thread::yield();
    has_to_end_ = ends;
    on_signal_();
  }
  /// The kernel says nothing when another comes.
  void EndUnheard() { has_to_end_ = true; }
  /// Returns when somebody has asked whether it has to end.
  void AwaitLook() const {
    while (asked_ == 0) std::this_thread::yield();
  }
  void SignalAtOnce() { at_once_ = true; }
  void Forbid() { allowed_ = false; }
  [[nodiscard]] int ended() const { return ended_; }

 private:
  std::function<void()> on_signal_;
  std::atomic<bool> begun_ = false;
  std::atomic<int> ended_ = 0;
  std::atomic<bool> has_to_end_ = true;
  mutable std::atomic<int> asked_ = 0;
  bool at_once_ = false, allowed_ = true;
};

std::shared_ptr<const policy::Policy> RulesThatWait(milliseconds timeout) {
  policy::Rule rule;
  rule.id = "asked";
  rule.action = policy::Action::kAsk;
  return std::make_shared<const policy::Policy>(
      std::vector{rule}, 7, std::vector<policy::Limit>{},
      policy::Settings{.ask_timeout = timeout, .hook = {}});
}

class ApprovalQueueTest : public ::testing::Test {
 protected:
  Question About(const std::string& path) {
    return {.policy = policy_,
            .rule = policy_->rules().data(),
            .names = {{policy::Effect::kRemove, path, policy::Layer::kBase}},
            .op = Op::kUnlink,
            .path = path,
            .new_path = {},
            .exe = "/test"};
  }
  Caller Me() { return {.pid = static_cast<uint32_t>(::getpid())}; }
  std::future<Answer> Ask(const std::string& path, LongWait* wait = nullptr) {
    return std::async(std::launch::async, [this, path, wait] {
      Caller caller = Me();
      caller.wait = wait;
      return queue_.Ask(caller, About(path));
    });
  }
  /// Returns when so many wait.
  std::vector<ApprovalQueue::Item> AwaitItems(size_t count) {
    for (;;) {
      auto items = queue_.Pending();
      if (items.size() == count) return items;
      std::this_thread::yield();
    }
  }
  void AwaitProcesses(size_t count) {
    while (AwaitItems(1)[0].processes.size() != count) {
      std::this_thread::yield();
    }
  }

  std::shared_ptr<const policy::Policy> policy_ =
      RulesThatWait(std::chrono::hours(1));
  ApprovalQueue queue_{{.waiting = 2, .remembered = 2}};
};

TEST_F(ApprovalQueueTest, TellsWhatWaitsAndTakesTheAnswer) {
  auto asked = Ask("a");
  const auto items = AwaitItems(1);
  EXPECT_EQ(items[0].question, About("a"));
  ASSERT_EQ(items[0].processes.size(), 1U);
  EXPECT_EQ(items[0].processes[0].pid, ::getpid());
  EXPECT_GT(items[0].left, milliseconds(0));
  EXPECT_FALSE(queue_.Reply(items[0].id + 1, true));
  EXPECT_TRUE(queue_.Reply(items[0].id, false));
  EXPECT_EQ(asked.get(), Answer::kNo);
  EXPECT_TRUE(queue_.Pending().empty());
  EXPECT_FALSE(queue_.Reply(items[0].id, true));
}

TEST_F(ApprovalQueueTest, RemembersAnApprovalAndNoDenial) {
  auto denied = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(denied.get(), Answer::kNo);
  auto approved = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(approved.get(), Answer::kYes);
  EXPECT_EQ(queue_.Ask(Me(), About("a")), Answer::kYes);
}

TEST_F(ApprovalQueueTest, ForgetsTheOldestApproval) {
  for (const char* path : {"a", "b", "c"}) {
    auto asked = Ask(path);
    queue_.Reply(AwaitItems(1)[0].id, true);
    EXPECT_EQ(asked.get(), Answer::kYes);
  }
  EXPECT_EQ(queue_.Ask(Me(), About("c")), Answer::kYes);
  EXPECT_EQ(queue_.Ask(Me(), About("b")), Answer::kYes);
  auto asked = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(asked.get(), Answer::kNo);
}

TEST_F(ApprovalQueueTest, AsksAgainWhenTheRulesAreOthers) {
  auto asked = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(asked.get(), Answer::kYes);
  policy_ = std::make_shared<const policy::Policy>(
      std::vector(policy_->rules().begin(), policy_->rules().end()), 8);
  asked = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(asked.get(), Answer::kNo);
}

TEST_F(ApprovalQueueTest, AsksAgainAfterAReloadAndAnotherProgram) {
  auto asked = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(asked.get(), Answer::kYes);
  Question other = About("a");
  other.exe = "/usr/bin/other";
  auto by_other =
      std::async(std::launch::async, [&] { return queue_.Ask(Me(), other); });
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(by_other.get(), Answer::kNo);
  EXPECT_EQ(queue_.Ask(Me(), About("a")), Answer::kYes);
  queue_.EndAll();
  asked = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(asked.get(), Answer::kNo);
}

TEST_F(ApprovalQueueTest, JoinsEqualQuestionsAndNoOthers) {
  auto first = Ask("a");
  AwaitItems(1);
  auto second = Ask("a");
  AwaitProcesses(2);
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(first.get(), Answer::kYes);
  EXPECT_EQ(second.get(), Answer::kYes);
  auto third = Ask("b");
  auto fourth = Ask("c");
  for (const auto& item : AwaitItems(2)) queue_.Reply(item.id, false);
  EXPECT_EQ(third.get(), Answer::kNo);
  EXPECT_EQ(fourth.get(), Answer::kNo);
}

TEST_F(ApprovalQueueTest, LetsOnlySoManyWait) {
  auto first = Ask("a");
  AwaitItems(1);
  auto second = Ask("a");
  AwaitProcesses(2);
  EXPECT_EQ(queue_.Ask(Me(), About("c")), Answer::kFull);
  EXPECT_EQ(queue_.Ask(Me(), About("a")), Answer::kFull);
  queue_.EndAll();
  EXPECT_EQ(first.get(), Answer::kEnded);
  EXPECT_EQ(second.get(), Answer::kEnded);
  auto third = Ask("c");
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(third.get(), Answer::kYes);
}

TEST_F(ApprovalQueueTest, IsLateWithoutAnAnswer) {
  policy_ = RulesThatWait(milliseconds(0));
  EXPECT_EQ(queue_.Ask(Me(), About("a")), Answer::kLate);
  EXPECT_TRUE(queue_.Pending().empty());
}

TEST_F(ApprovalQueueTest, ASignalEndsTheWaitOfWhoGotIt) {
  FakeWait interrupted;
  FakeWait other;
  auto first = Ask("a", &interrupted);
  AwaitItems(1);
  auto second = Ask("a", &other);
  AwaitProcesses(2);
  interrupted.Signal();
  EXPECT_EQ(first.get(), Answer::kInterrupted);
  EXPECT_EQ(interrupted.ended(), 1);
  AwaitProcesses(1);
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(second.get(), Answer::kYes);
  FakeWait at_once;
  at_once.SignalAtOnce();
  EXPECT_EQ(Ask("b", &at_once).get(), Answer::kInterrupted);
  EXPECT_TRUE(queue_.Pending().empty());
}

TEST_F(ApprovalQueueTest, ASignalThatIsSurvivedEndsNoWait) {
  FakeWait wait;
  auto asked = Ask("a", &wait);
  wait.Signal(/*ends=*/false);
  wait.AwaitLook();
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(asked.get(), Answer::kYes);
}

TEST_F(ApprovalQueueTest, AnotherSignalThatNobodyTellsOfEndsTheWait) {
  FakeWait wait;
  auto asked = Ask("a", &wait);
  wait.Signal(/*ends=*/false);
  wait.AwaitLook();
  wait.EndUnheard();
  EXPECT_EQ(asked.get(), Answer::kInterrupted);
}

TEST_F(ApprovalQueueTest, WhoMustNotWaitDoesNot) {
  FakeWait wait;
  wait.Forbid();
  EXPECT_EQ(Ask("a", &wait).get(), Answer::kFull);
  EXPECT_EQ(wait.ended(), 0);
  EXPECT_TRUE(queue_.Pending().empty());
}

TEST_F(ApprovalQueueTest, DeniesWhileSuspendedButWhatWasApproved) {
  auto approved = Ask("a");
  queue_.Reply(AwaitItems(1)[0].id, true);
  EXPECT_EQ(approved.get(), Answer::kYes);
  auto asked = Ask("b");
  AwaitItems(1);
  queue_.Suspend();
  EXPECT_EQ(asked.get(), Answer::kEnded);
  EXPECT_EQ(queue_.Ask(Me(), About("b")), Answer::kEnded);
  EXPECT_EQ(queue_.Ask(Me(), About("a")), Answer::kYes);
  queue_.Resume();
  asked = Ask("b");
  queue_.Reply(AwaitItems(1)[0].id, false);
  EXPECT_EQ(asked.get(), Answer::kNo);
}

TEST(InquiryTest, IsDueUntilAllIsGranted) {
  const auto policy = RulesThatWait(milliseconds(0));
  const policy::Rule& rule = policy->rules()[0];
  Inquiry inquiry;
  Change change;
  change.path = "a";
  EXPECT_TRUE(inquiry.Check(change));
  const auto note = [&](const char* path) {
    return inquiry.Note(policy, rule,
                        {.effect = policy::Effect::kRemove, .path = path});
  };
  EXPECT_TRUE(note("a"));
  EXPECT_TRUE(note("a"));
  EXPECT_FALSE(inquiry.due());
  const Status refused = inquiry.Check(change);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kVetoed);
  EXPECT_EQ(refused.error().rule, "asked");
  EXPECT_TRUE(inquiry.due());
  ASSERT_EQ(inquiry.open().size(), 1U);
  EXPECT_EQ(inquiry.open()[0].names.size(), 1U);
  EXPECT_EQ(inquiry.open()[0].path, "a");
  inquiry.Grant();
  EXPECT_TRUE(note("a"));
  EXPECT_TRUE(inquiry.Check(change));
  EXPECT_TRUE(note("b"));
  EXPECT_FALSE(inquiry.Check(change));
}

TEST(InquiryTest, RefusesMoreNamesThanAnybodyReads) {
  const auto policy = RulesThatWait(milliseconds(0));
  Inquiry inquiry;
  Status noted;
  for (size_t i = 0; i < Inquiry::kMaxNames; ++i) {
    const std::string path = std::to_string(i);
    noted = inquiry.Note(policy, policy->rules()[0], {.path = path});
    EXPECT_TRUE(noted);
  }
  noted = inquiry.Note(policy, policy->rules()[0], {.path = "one more"});
  EXPECT_FALSE(noted);
  EXPECT_FALSE(inquiry.due());
}

TEST(ProcessIdentityTest, KnowsThreadsAndAncestors) {
  const ProcessIdentity self = IdentifyProcess(::getpid());
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_EQ(
      std::async(std::launch::async, [] { return IdentifyProcess(::gettid()); })
          .get(),
      self);
  EXPECT_EQ(IdentifyProcess(0), ProcessIdentity());
  const auto stat = ReadProcessStat(::getpid());
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, ::getppid());
  EXPECT_EQ(stat->session, ::getsid(0));
  EXPECT_GT(stat->start, 0U);
  EXPECT_TRUE(DescendsFrom(::getpid(), ::getppid()));
  EXPECT_FALSE(DescendsFrom(::getppid(), ::getpid()));
}

/// A child that handles some signals, blocks another, and is stopped, so that
/// what it is sent waits for it.
class StoppedChild {
 public:
  StoppedChild() : pid_(::fork()) {
    if (pid_ == 0) {
      for (const int signal : {SIGALRM, SIGINT, SIGTERM, SIGCHLD}) {
        ::signal(signal, [](int) {});
      }
      sigset_t blocked;
      sigemptyset(&blocked);
      sigaddset(&blocked, SIGHUP);
      ::sigprocmask(SIG_BLOCK, &blocked, nullptr);
      ::raise(SIGSTOP);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, WUNTRACED), pid_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  ~StoppedChild() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  StoppedChild(const StoppedChild&) = delete;
  StoppedChild& operator=(const StoppedChild&) = delete;

  void Send(int signal) const { EXPECT_EQ(::kill(pid_, signal), 0); }
  [[nodiscard]] bool IsToEnd() const { return txfs::IsToEnd(pid_); }

 private:
  const pid_t pid_;
};

TEST(ProcessIdentityTest, KnowsWhichSignalsEndAProcess) {
  const StoppedChild child;
  EXPECT_FALSE(child.IsToEnd());
  for (const int survived : {SIGALRM, SIGCHLD, SIGWINCH, SIGHUP}) {
    child.Send(survived);
    EXPECT_FALSE(child.IsToEnd()) << survived;
  }
  child.Send(SIGTERM);
  EXPECT_TRUE(child.IsToEnd()) << "it is asked to";
  const StoppedChild other;
  other.Send(SIGABRT);
  EXPECT_TRUE(other.IsToEnd()) << "it does not catch it";
  EXPECT_TRUE(IsToEnd(0)) << "nobody knows";
}

}  // namespace
}  // namespace txfs
