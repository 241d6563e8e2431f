#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// The calls by which the journal reaches the disk. Tests put one in that
/// fails as a full or broken disk does.
class Io {
 public:
  virtual ~Io() = default;
  /// pwritev(2).
  virtual ssize_t Write(int fd, const iovec* parts, int count, off_t offset);
  /// fdatasync(2).
  virtual int Sync(int fd);
  /// fallocate(2).
  virtual int Allocate(int fd, int mode, off_t offset, off_t length);
  /// Asked before a batch of tables is committed: 0, or the errno to fail with.
  virtual int CommitError() { return 0; }

  static Io& System();
};

/// Whether it is for want of space.
inline bool IsFull(const Error& error) {
  return error.code == ENOSPC || error.code == EDQUOT;
}

/// Writes all of `parts`, one behind the other, from `offset` on, or fails;
/// after a failure any part may have been written.
Status WritePartsFully(Io& io, int fd, uint64_t offset,
                       std::vector<ByteSpan> parts);

/// Writes zeros to [from, to), which are multiples of 4096, page by page.
Status WriteZeros(Io& io, int fd, uint64_t from, uint64_t to);

/// Gives an empty file blocks for its first `size` bytes, a multiple of 4096.
Status Preallocate(Io& io, int fd, uint64_t size);

}  // namespace txfs
