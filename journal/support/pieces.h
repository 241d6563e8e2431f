#pragma once

#include <cstdint>
#include <functional>

#include "journal/support/bytes.h"
#include "journal/support/checksum.h"
#include "journal/support/result.h"

namespace txfs {

/// As ReadFully: reads from `offset` on until `out` is full or the file ends.
using ReadAt =
    std::function<Result<size_t>(uint64_t offset, MutableByteSpan out)>;

/// Reads bytes [from, to) in order and passes them to `take`, at most 1 MiB at
/// a time. EIO if the file ends before `to`.
Status ForEachPiece(
    uint64_t from, uint64_t to, const ReadAt& read,
    const std::function<Status(uint64_t offset, ByteSpan piece)>& take);

/// The same, from an open file.
Status ForEachPiece(
    uint64_t from, uint64_t to, int fd,
    const std::function<Status(uint64_t offset, ByteSpan piece)>& take);

/// The hash of the first `size` bytes of an open file. EIO when it is shorter.
Result<ContentHash> HashOfFile(int fd, uint64_t size);

}  // namespace txfs
