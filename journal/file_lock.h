#pragma once

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Holds an flock until destroyed.
class FileLock {
 public:
  /// Waits up to `timeout_ms` (0: not at all). EWOULDBLOCK, kind kBusy, when
  /// somebody has it.
  static Result<FileLock> Take(int dir, const std::string& path,
                               int timeout_ms);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// The process that took the lock last; empty when the file does not say. For
/// messages only.
std::string LockHolder(int dir, const std::string& path);
/// Makes this process the one that LockHolder names.
Status WriteLockHolder(int fd);

}  // namespace txfs
