#pragma once

#include "journal/base/bytes.h"

namespace txfs {

/// XXH3, 64 bits.
[[nodiscard]] uint64_t Checksum(ByteSpan bytes, uint64_t seed = 0);

/// XXH3, 128 bits: contents of one hash are taken for equal.
struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;

  static ContentHash Of(ByteSpan content);
  bool operator==(const ContentHash&) const = default;
};

}  // namespace txfs
