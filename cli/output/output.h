#pragma once

#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// stdout of a command that may print a lot: through a pager if asked.
class Output {
 public:
  Output() = default;
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] static bool IsTerminal();

  /// From here on to $PAGER, or to less; unless stdout is no terminal, or there
  /// is no pager.
  void StartPager();
  void Write(std::string_view bytes);
  /// Nobody reads any more: the pager was left.
  [[nodiscard]] bool closed() const { return closed_; }
  /// Flushes and waits for the pager. The error of a write that failed.
  Status Finish();

 private:
  FILE* file_ = stdout;
  bool closed_ = false;
  int error_ = 0;
};

}  // namespace txfs::cli
