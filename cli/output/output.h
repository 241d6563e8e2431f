#pragma once

#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// The stdout of a command, optionally through a pager.
class Output {
 public:
  Output() = default;
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  [[nodiscard]] static bool IsTerminal();

  /// Sends further output to $PAGER or less. No effect if stdout is not a
  /// terminal or there is no pager.
  void StartPager();
  void Write(std::string_view bytes);
  /// The pager has ended: no output is read.
  [[nodiscard]] bool closed() const { return closed_; }
  /// Flushes and waits for the pager. Returns the error of a failed write.
  Status Finish();

 private:
  FILE* file_ = stdout;
  bool closed_ = false;
  int error_ = 0;
};

}  // namespace txfs::cli
