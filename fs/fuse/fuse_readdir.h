#pragma once

#include <cstdint>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"

namespace txfs {

struct FuseContext;

/// Answers READDIR with up to `size` bytes of entries after `cookie`.
void ReplyEntries(fuse_req_t req, Filesystem& fs, Ino ino, uint64_t cookie,
                  size_t size) noexcept;

/// Answers READDIRPLUS: entries with attributes, or as FuseScans says, without.
/// Counts a lookup for each entry with attributes, and gives the lookups back
/// if the kernel does not take the reply.
void ReplyEntriesPlus(fuse_req_t req, FuseContext& context, Ino ino,
                      uint64_t cookie, size_t size) noexcept;

}  // namespace txfs
