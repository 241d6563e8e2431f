#include "journal/support/io.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "journal/support/crash_point.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

std::atomic<bool> are_stores_volatile = false;

}  // namespace

void MakeStoresVolatile() { are_stores_volatile = true; }

bool StoresAreVolatile() { return are_stores_volatile; }

int SyncOfStore(int fd) { return StoresAreVolatile() ? 0 : ::fsync(fd); }

ssize_t Io::Write(int fd, const iovec* parts, int count, off_t offset) {
  CrashPoint();
  return ::pwritev(fd, parts, count, offset);
}

int Io::Sync(int fd) {
  CrashPoint();
  return StoresAreVolatile() ? 0 : ::fdatasync(fd);
}

int Io::Allocate(int fd, int mode, off_t offset, off_t length) {
  CrashPoint();
  return ::fallocate(fd, mode, offset, length);
}

Io& Io::System() {
  static Io io;
  return io;
}

Status WritePartsFully(Io& io, int fd, uint64_t offset,
                       std::vector<ByteSpan> parts) {
  constexpr size_t kPartsPerCall = 256;
  size_t first = 0;
  while (first < parts.size()) {
    std::array<iovec, kPartsPerCall> vectors;
    const size_t count = std::min(parts.size() - first, kPartsPerCall);
    for (size_t i = 0; i < count; ++i) {
      const ByteSpan part = parts[first + i];
      vectors[i] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    const ssize_t n = io.Write(fd, vectors.data(), static_cast<int>(count),
                               static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return Fail(error, "write " + PathOfFd(fd));
    }
    auto written = static_cast<size_t>(n);
    offset += written;
    while (first < parts.size() && written >= parts[first].size()) {
      written -= parts[first++].size();
    }
    if (written > 0) parts[first] = parts[first].subspan(written);
  }
  return {};
}

// One page at a time: a store into a large folio would dirty, and each sync
// write, the whole folio.
Status WriteZeros(Io& io, int fd, uint64_t from, uint64_t to) {
  constexpr size_t kPage = 4096;
  static constexpr std::array<std::byte, kPage> kZeros{};
  for (uint64_t at = from; at < to; at += kPage) {
    TRY(WritePartsFully(io, fd, at, {kZeros}));
  }
  return {};
}

Status AllocateBlocks(Io& io, int fd, uint64_t size, uint64_t from) {
  int result = 0;
  do {
    result = io.Allocate(fd, 0, static_cast<off_t>(from),
                         static_cast<off_t>(size - from));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return {};
  // A file as large as that has no room anywhere.
  const bool too_large = errno == EFBIG || errno == EINVAL;
  return Fail(too_large ? ENOSPC : errno, "preallocate");
}

Status Preallocate(Io& io, int fd, uint64_t size, uint64_t from) {
  Status done = AllocateBlocks(io, fd, size, from);
  if (done || done.error().code != EOPNOTSUPP) return done;
  return WriteZeros(io, fd, from, size);
}

}  // namespace txfs
