#include "journal/support/pieces.h"

#include <algorithm>

#include "journal/support/file.h"

namespace txfs {

constexpr uint64_t kPieceBytes = 1 << 20;

Status ForEachPiece(
    uint64_t from, uint64_t to, const ReadAt& read,
    const std::function<Status(uint64_t offset, ByteSpan piece)>& take) {
  if (from >= to) return {};
  Bytes buffer(std::min(to - from, kPieceBytes));
  for (uint64_t offset = from; offset < to;) {
    const MutableByteSpan part = MutableByteSpan(buffer).first(
        std::min<uint64_t>(buffer.size(), to - offset));
    const size_t n = TRY(read(offset, part));
    if (n == 0) return Fail(EIO, "read");
    TRY(take(offset, part.first(n)));
    offset += n;
  }
  return {};
}

Status ForEachPiece(
    uint64_t from, uint64_t to, int fd,
    const std::function<Status(uint64_t offset, ByteSpan piece)>& take) {
  return ForEachPiece(
      from, to,
      [fd](uint64_t offset, MutableByteSpan out) {
        return ReadFully(fd, offset, out);
      },
      take);
}

Result<ContentHash> HashOfFile(int fd, uint64_t size) {
  ContentHasher hasher;
  TRY(ForEachPiece(0, size, fd, [&](uint64_t, ByteSpan piece) {
    hasher.Add(piece);
    return Status();
  }));
  return hasher.Finish();
}

}  // namespace txfs
