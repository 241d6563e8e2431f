#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace txfs::cli {

/// A line on a terminal that says how far a long commit is; gone when the
/// object is.
class ProgressLine {
 public:
  using Clock = std::function<std::chrono::steady_clock::time_point()>;

  /// `fd` stays the caller's. Where it is no terminal nothing is written.
  explicit ProgressLine(int fd, Clock now = std::chrono::steady_clock::now);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Nothing is to be seen of what takes less than a second.
  void Show(size_t done, size_t all);

 private:
  const int fd_;
  const Clock now_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_;
  bool shown_ = false;
};

}  // namespace txfs::cli
