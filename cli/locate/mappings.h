#pragma once

#include <string>
#include <utility>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// Writes back what processes have stored through shared mappings of files on a
/// mount. Of processes whose mappings we may not see it is only begun.
/// syncfs(2) begins all of it, but of FUSE it does not wait for any since
/// Linux 6.18 (measured: it returns while the daemon is stopped); fsync(2) of a
/// file does. When a mapping ends, the kernel itself writes back.
///
/// It is done in a process of its own: an operation on the file that waits for
/// an answer has the kernel's lock of it, and whoever flushes it meanwhile
/// cannot even be killed. The process is left behind if it is not done.
class MappingsFlush {
 public:
  static Result<MappingsFlush> Start(const std::string& mountpoint);
  /// Whether it is done, within `timeout_ms`.
  [[nodiscard]] bool Await(int timeout_ms) const;

 private:
  explicit MappingsFlush(UniqueFd end) : end_(std::move(end)) {}
  UniqueFd end_;  ///< of a pipe whose other end it has; none: nothing to do
};

}  // namespace txfs::cli
