#include "cli/output/progress_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

using std::chrono::milliseconds;

/// What arrives at the other end of a terminal.
class ProgressLineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int screen = -1, terminal = -1;
    ASSERT_EQ(openpty(&screen, &terminal, nullptr, nullptr, nullptr), 0);
    screen_ = UniqueFd(screen);
    terminal_ = UniqueFd(terminal);
  }
  static std::string ReadAll(const UniqueFd& fd) {
    std::string text;
    char buffer[256];
    pollfd ready{.fd = fd.get(), .events = POLLIN, .revents = 0};
    while (poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
      const ssize_t n = read(fd.get(), buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  ProgressLine::Clock Clock() {
    return [this] { return now_; };
  }

  UniqueFd screen_, terminal_;
  std::chrono::steady_clock::time_point now_;
};

TEST_F(ProgressLineTest, ComesAfterASecondAndGoesInTheEnd) {
  {
    ProgressLine line(terminal_.get(), Clock());
    now_ += milliseconds(999);
    line.Show(1, 10);
    EXPECT_EQ(ReadAll(screen_), "");
    now_ += milliseconds(1);
    line.Show(2, 10);
    EXPECT_EQ(ReadAll(screen_), "\r\033[Kcommitting: 2 of 10 steps");
    line.Show(10, 10);
    EXPECT_EQ(ReadAll(screen_), "\r\033[Kcommitting: 10 of 10 steps");
  }
  EXPECT_EQ(ReadAll(screen_), "\r\033[K");
}

TEST_F(ProgressLineTest, OfWhatWasQuickThereIsNothing) {
  {
    ProgressLine line(terminal_.get(), Clock());
    line.Show(10, 10);
  }
  EXPECT_EQ(ReadAll(screen_), "");
}

TEST_F(ProgressLineTest, WhereThereIsNoTerminalThereIsNothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd out(ends[0]), in(ends[1]);
  {
    ProgressLine line(in.get(), Clock());
    now_ += std::chrono::seconds(5);
    line.Show(2, 10);
  }
  EXPECT_EQ(ReadAll(out), "");
}

}  // namespace
}  // namespace txfs::cli
