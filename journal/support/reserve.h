#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "journal/support/io.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"

namespace txfs {

/// Disk blocks set aside in the file `name` of `dir`, for work that has to
/// succeed on a full disk. Thread-safe.
class Reserve {
 public:
  /// Borrows `dir` and `io`. Takes no blocks yet.
  Reserve(int dir, std::string name, Io& io)
      : dir_(dir), name_(std::move(name)), io_(io) {}

  /// Sets `bytes` aside, a multiple of 4096, unless it has as much. ENOSPC,
  /// EDQUOT: it has what it had before.
  Status Require(uint64_t bytes);
  /// Sets `bytes` aside, rounded up to 4096, and gives back what it has above
  /// that. ENOSPC, EDQUOT, EOPNOTSUPP: it has what it had before.
  Status Set(uint64_t bytes);
  /// Gives the blocks back to the filesystem. Returns whether there were any.
  bool GiveUp();

 private:
  /// After an attempt to have `bytes` in `fd`.
  Status Took(int fd, const Status& made, uint64_t bytes) REQUIRES(mutex_);

  const int dir_;
  const std::string name_;
  Io& io_;
  Mutex mutex_;
  /// Read without the mutex: the value of a moment ago is enough.
  std::atomic<uint64_t> bytes_ = 0;
};

}  // namespace txfs
