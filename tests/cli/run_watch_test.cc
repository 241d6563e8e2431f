#include "cli/daemon/run_watch.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <tuple>

#include "fake_workspace.h"

namespace txfs::cli {
namespace {

/// A process that waits until it is killed.
class Supervisor {
 public:
  Supervisor() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ~Supervisor() { Kill(); }
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void Kill() {
    if (killed_) return;
    killed_ = true;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
  bool killed_ = false;
};

/// Tells what becomes of its run.
class WatchedWorkspace final : public FakeWorkspace {
 public:
  WatchedWorkspace() : FakeWorkspace(nullptr) {}

  bool can_begin = true;
  std::vector<std::string> rolled_back;

  Result<Savepoint> MakeSavepoint(const std::string& name) override {
    if (!can_begin) return Fail(ENOSPC, "cannot make a savepoint");
    return FakeWorkspace::MakeSavepoint(name);
  }
  Result<RollbackReport> Rollback(const std::string& name) override {
    rolled_back.push_back(name);
    return FakeWorkspace::Rollback(name);
  }
};

class RunWatchTest : public ::testing::Test {
 protected:
  RunWatchTest() : watch_(workspace_, [this] { unmounted_.set_value(); }) {}

  /// Asks to begin a run of `supervisor`; returns whether it has begun.
  bool Begin(const Supervisor& supervisor) {
    bool begun = false;
    std::ignore = watch_.Handle(
        {{"request", "run_begin"}, {"id", "run-1"}, {"own", true}},
        [&](const Frame& frame) -> Status {
          begun = !frame.header.contains("error");
          return {};
        },
        supervisor.pid());
    return begun;
  }
  void AwaitUnmount() { unmounted_.get_future().wait(); }

  WatchedWorkspace workspace_;
  std::promise<void> unmounted_;
  RunWatch watch_;
};

TEST_F(RunWatchTest, UnmountsIfTheSupervisorDiesBeforeTheRun) {
  Supervisor supervisor;
  watch_.Expect(supervisor.pid());
  supervisor.Kill();
  AwaitUnmount();
  EXPECT_TRUE(watch_.IsExpecting());
  EXPECT_TRUE(workspace_.rolled_back.empty());
  EXPECT_FALSE(Begin(supervisor));
}

TEST_F(RunWatchTest, RollsBackAndUnmountsIfTheSupervisorDiesDuringTheRun) {
  Supervisor supervisor;
  watch_.Expect(supervisor.pid());
  ASSERT_TRUE(Begin(supervisor));
  EXPECT_FALSE(watch_.IsExpecting());
  supervisor.Kill();
  AwaitUnmount();
  EXPECT_EQ(workspace_.rolled_back, std::vector<std::string>{"run-1"});
}

TEST_F(RunWatchTest, UnmountsIfTheSupervisorDiesAfterItsRunCouldNotBegin) {
  Supervisor supervisor;
  watch_.Expect(supervisor.pid());
  workspace_.can_begin = false;
  ASSERT_FALSE(Begin(supervisor));
  EXPECT_TRUE(watch_.IsExpecting());
  supervisor.Kill();
  AwaitUnmount();
  EXPECT_TRUE(workspace_.rolled_back.empty());
}

TEST_F(RunWatchTest, ARunThatCouldNotBeginCanBeginLater) {
  Supervisor supervisor, other;
  watch_.Expect(supervisor.pid());
  workspace_.can_begin = false;
  ASSERT_FALSE(Begin(supervisor));
  workspace_.can_begin = true;
  EXPECT_FALSE(Begin(other));
  ASSERT_TRUE(Begin(supervisor));
  watch_.End();
  EXPECT_TRUE(workspace_.rolled_back.empty());
}

TEST_F(RunWatchTest, ARunThatCouldNotBeginLeavesAnotherOneThatDid) {
  Supervisor supervisor, other;
  watch_.Expect(other.pid());
  ASSERT_TRUE(Begin(other));
  watch_.Expect(supervisor.pid());
  EXPECT_FALSE(Begin(supervisor));
  other.Kill();
  AwaitUnmount();
  EXPECT_EQ(workspace_.rolled_back, std::vector<std::string>{"run-1"});
}

}  // namespace
}  // namespace txfs::cli
