#pragma once

#include <cstdint>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"

namespace txfs {

/// Answers READDIR with up to `size` bytes of entries after `cookie`.
void ReplyEntries(fuse_req_t req, Filesystem& fs, Ino ino, uint64_t cookie,
                  size_t size) noexcept;

/// Answers READDIRPLUS: the same with attributes. Every entry but "." and ".."
/// counts a lookup, given back when nobody takes the reply.
void ReplyEntriesPlus(fuse_req_t req, Filesystem& fs, Ino ino, uint64_t cookie,
                      size_t size) noexcept;

}  // namespace txfs
