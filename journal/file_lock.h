#pragma once

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Holds an flock until destroyed.
class FileLock {
 public:
  /// Waits up to `timeout_ms` (0: not at all). EWOULDBLOCK, kind kBusy, if
  /// another process holds the lock.
  static Result<FileLock> Take(int dir, const std::string& path,
                               int timeout_ms);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// The pid of the last process that took the lock; empty if the file does not
/// have one. For messages only.
std::string LockHolder(int dir, const std::string& path);
/// Makes this process the one that LockHolder returns.
Status WriteLockHolder(int fd);

}  // namespace txfs
