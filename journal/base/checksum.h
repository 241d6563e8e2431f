#pragma once

#include "journal/base/bytes.h"

namespace txfs {

/// XXH3, 64 bits.
[[nodiscard]] uint64_t Checksum(ByteSpan bytes, uint64_t seed = 0);

}  // namespace txfs
