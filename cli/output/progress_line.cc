#include "cli/output/progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace txfs::cli {
namespace {

constexpr std::chrono::seconds kQuiet{1};
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

ProgressLine::ProgressLine(int fd, Clock now)
    : fd_(fd),
      now_(std::move(now)),
      is_terminal_(::isatty(fd) == 1),
      start_(now_()) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::ignore = ::dprintf(fd_, "%s", kClearLine);
}

void ProgressLine::Show(size_t done, size_t all) {
  if (!is_terminal_ || now_() - start_ < kQuiet) return;
  shown_ = true;
  std::ignore =
      ::dprintf(fd_, "%scommitting: %zu of %zu steps", kClearLine, done, all);
}

}  // namespace txfs::cli
