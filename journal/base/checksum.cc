#include "journal/base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace txfs {

uint64_t Checksum(ByteSpan bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace txfs
