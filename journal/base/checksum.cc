#include "journal/base/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace txfs {

uint64_t Checksum(ByteSpan bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

ContentHash ContentHash::Of(ByteSpan content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace txfs
