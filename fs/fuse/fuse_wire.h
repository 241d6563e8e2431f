#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>

#include "journal/support/bytes.h"

namespace txfs {

/// The part of the kernel's protocol that libfuse 3.14 drops: reads it off the
/// raw requests on their way in and adds it to the INIT reply on its way out.
class FuseWire {
 public:
  /// Every request passes here first, on the thread that will handle it.
  void OnRequest(ByteSpan message);

  /// writev(2) of a reply or notification to `fd`. Asks for
  /// FUSE_HANDLE_KILLPRIV_V2 in the INIT reply if the kernel offered it.
  ssize_t Send(int fd, const iovec* parts, int count);

  /// Whether the write that this thread handles must clear set-user-ID and
  /// set-group-ID.
  [[nodiscard]] static bool WriteKillsPrivileges();

 private:
  /// `unique` of the INIT request whose reply is due; 0: none, or not offered.
  std::atomic<uint64_t> init_{0};
};

}  // namespace txfs
