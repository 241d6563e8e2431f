#pragma once

#include <cstdint>
#include <string_view>

#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// What stands around the content of a file that is written as a whole: a magic
/// and a version before it, a checksum of all that behind it.
struct FileFrame {
  std::string_view magic;  ///< 8 bytes
  uint32_t version = 1;    ///< the highest that is known
  std::string_view what;   ///< for messages: "commit plan"
};

/// Bytes of a file in `frame`.
[[nodiscard]] Bytes PutInFrame(const FileFrame& frame, ByteSpan content);

/// The content in `bytes`. EBADMSG; EPROTONOSUPPORT for a newer version.
Result<ByteSpan> TakeFromFrame(const FileFrame& frame, ByteSpan bytes);

/// The version of what TakeFromFrame took the content from.
[[nodiscard]] uint32_t VersionIn(const FileFrame& frame, ByteSpan bytes);

/// EBADMSG: the content makes no sense.
[[nodiscard]] std::unexpected<Error> Damaged(const FileFrame& frame);

}  // namespace txfs
