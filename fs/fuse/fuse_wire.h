#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>

#include "fs/fuse/request_counts.h"
#include "journal/support/bytes.h"

namespace txfs {

/// The part of the kernel protocol that libfuse 3.14 does not support. Reads it
/// from raw requests and adds it to the INIT reply.
class FuseWire {
 public:
  /// Call it first with every request, on the thread that will handle it.
  void OnRequest(ByteSpan message);

  /// writev(2) of a reply or notification to `fd`. Adds to the INIT reply what
  /// libfuse cannot ask for, of that what the kernel offered:
  /// FUSE_HANDLE_KILLPRIV_V2, and FUSE_NO_EXPORT_SUPPORT.
  ssize_t Send(int fd, const iovec* parts, int count);

  /// Whether the write that this thread handles must clear set-user-ID and
  /// set-group-ID.
  [[nodiscard]] static bool WriteKillsPrivileges();

  [[nodiscard]] const RequestCounts& requests() const { return requests_; }

 private:
  /// `unique` of the pending INIT request; 0: none, or it offered no such flag.
  std::atomic<uint64_t> init_{0};
  /// The flags for its reply, in order as in `flags` and `flags2`.
  std::atomic<uint64_t> adds_{0};
  RequestCounts requests_;
};

}  // namespace txfs
