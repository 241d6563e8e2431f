#include "journal/support/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace txfs {

uint64_t Checksum(ByteSpan bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

struct ContentHasher::State {
  XXH3_state_t xxh3;
};

ContentHasher::ContentHasher() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
}

ContentHasher::~ContentHasher() = default;

void ContentHasher::Add(ByteSpan piece) {
  XXH3_128bits_update(&state_->xxh3, piece.data(), piece.size());
}

ContentHash ContentHasher::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {.low = hash.low64, .high = hash.high64};
}

ContentHash ContentHash::Of(ByteSpan content) {
  const XXH128_hash_t hash = XXH3_128bits(content.data(), content.size());
  return {.low = hash.low64, .high = hash.high64};
}

}  // namespace txfs
