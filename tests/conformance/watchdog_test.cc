#include "tests/conformance/watchdog.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <string>

#include "tests/conformance/process.h"

namespace txfs::testing {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;

/// That no process has in its command line.
constexpr const char* kNoMark = "/nobody is called so/";

void Hang() {
  Watchdog watchdog(kNoMark, 1s);
  watchdog.Begin("a wait for what never comes");
  std::promise<void>().get_future().wait();
}

TEST(WatchdogTest, TellsWhatHangsAndWhere) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(Hang(),
               "hangs for 1 s: a wait for what never comes\n(.|\n)*"
               " watchdog: in .*, system call ");
}

TEST(WatchdogTest, LeavesAloneWhatEndsInTime) {
  Watchdog watchdog(kNoMark, 1h);
  watchdog.Begin("a moment");
}

TEST(WatchdogTest, FindsOtherProcessesByTheirCommandLines) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const std::string line = "\n" + std::to_string(child) + ": ";
  EXPECT_NE(WhereThreadsAre("_test").find(line), std::string::npos);
  EXPECT_EQ(WhereThreadsAre(kNoMark).find(line), std::string::npos);
  KillAndWait(child);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace txfs::testing
