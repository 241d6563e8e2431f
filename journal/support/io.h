#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// The calls with which the journal writes to the disk. Tests substitute an
/// object whose calls fail like a full or broken disk.
class Io {
 public:
  virtual ~Io() = default;
  /// pwritev(2).
  virtual ssize_t Write(int fd, const iovec* parts, int count, off_t offset);
  /// fdatasync(2).
  virtual int Sync(int fd);
  /// fallocate(2).
  virtual int Allocate(int fd, int mode, off_t offset, off_t length);
  /// Called before a batch of tables is committed: 0, or the errno to fail
  /// with.
  virtual int CommitError() { return 0; }

  static Io& System();
};

/// From now on, no store that this process writes need survive power loss, so
/// nothing of them is synced. Before the first one is opened.
void MakeStoresVolatile();
[[nodiscard]] bool StoresAreVolatile();

/// fsync(2) of a file or a directory of a store.
int SyncOfStore(int fd);

/// Whether the error is lack of space or quota.
inline bool IsFull(const Error& error) {
  return error.code == ENOSPC || error.code == EDQUOT;
}

/// Writes all of `parts` consecutively from `offset` on, or fails; after a
/// failure any part may have been written.
Status WritePartsFully(Io& io, int fd, uint64_t offset,
                       std::vector<ByteSpan> parts);

/// Writes zeros to [from, to), which are multiples of 4096, page by page.
Status WriteZeros(Io& io, int fd, uint64_t from, uint64_t to);

/// Allocates blocks for the first `size` bytes of a file that has no content at
/// `from` and beyond. Both are multiples of 4096.
Status Preallocate(Io& io, int fd, uint64_t size, uint64_t from = 0);
/// The same where the filesystem can do it without writing. EOPNOTSUPP: it
/// cannot.
Status AllocateBlocks(Io& io, int fd, uint64_t size, uint64_t from);

}  // namespace txfs
