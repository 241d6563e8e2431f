#pragma once

#include <string>
#include <utility>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// Writes back what processes changed through shared mappings of files on a
/// mount. For processes whose mappings this process may not see, only begins
/// the write-back. syncfs(2) begins all write-back, but since Linux 6.18 does
/// not wait for it on FUSE (measured: it returns while the daemon is stopped);
/// fsync(2) of a file does. When a mapping ends, the kernel writes back by
/// itself.
///
/// Runs in a separate process: an operation on the file that waits for an
/// answer holds the kernel's lock of the file, and a process that flushes the
/// file then cannot be killed. If it is not done in time, the process is left
/// behind.
class MappingsFlush {
 public:
  static Result<MappingsFlush> Start(const std::string& mountpoint);
  /// Waits up to `timeout_ms`; returns whether it is done.
  [[nodiscard]] bool Await(int timeout_ms) const;

 private:
  explicit MappingsFlush(UniqueFd end) : end_(std::move(end)) {}
  UniqueFd end_;  ///< of a pipe to the process; none: nothing to do
};

}  // namespace txfs::cli
