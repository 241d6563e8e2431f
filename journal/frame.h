#pragma once

#include <cstdint>
#include <string_view>

#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// The frame of a file that is written as a whole: a magic and a version before
/// the content, a checksum of all of it after the content.
struct FileFrame {
  std::string_view magic;  ///< 8 bytes
  uint32_t version = 1;    ///< the highest known one
  std::string_view what;   ///< noun for messages: "commit plan"
};

/// The bytes of a file: `content` in `frame`.
[[nodiscard]] Bytes PutInFrame(const FileFrame& frame, ByteSpan content);

/// The content in `bytes`. EBADMSG; EPROTONOSUPPORT for a newer version.
Result<ByteSpan> TakeFromFrame(const FileFrame& frame, ByteSpan bytes);

/// The version in `bytes`, from which TakeFromFrame took the content.
[[nodiscard]] uint32_t VersionIn(const FileFrame& frame, ByteSpan bytes);

/// EBADMSG for content that cannot be decoded.
[[nodiscard]] std::unexpected<Error> Damaged(const FileFrame& frame);

}  // namespace txfs
