#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace txfs::cli {

/// A line on a terminal with the progress of a long commit. The destructor
/// clears it.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// Does not own `fd`. Writes nothing if it is not a terminal.
  explicit ProgressLine(int fd, Clock now = std::chrono::steady_clock::now);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Writes nothing in the first second.
  void Show(size_t done, size_t all);

 private:
  const int fd_;
  const Clock now_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_;
  bool shown_ = false;
};

}  // namespace txfs::cli
