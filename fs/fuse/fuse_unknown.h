#pragma once

#include "fs/fuse/fuse_ops.h"
#include "journal/support/bytes.h"

namespace txfs {

/// Answers `request` to `fd` if it is one that libfuse 3.14 does not know and
/// txfs supports: STATX with the time of birth, and TMPFILE. False: it is
/// another one. Does not use libfuse.
[[nodiscard]] bool AnswerUnknown(FuseContext& context, int fd,
                                 ByteSpan request) noexcept;

}  // namespace txfs
