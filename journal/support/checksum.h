#pragma once

#include <memory>

#include "journal/support/bytes.h"

namespace txfs {

/// XXH3, 64 bits.
[[nodiscard]] uint64_t Checksum(ByteSpan bytes, uint64_t seed = 0);

/// XXH3, 128 bits. Contents with the same hash are taken as equal.
struct ContentHash {
  uint64_t low = 0;
  uint64_t high = 0;

  static ContentHash Of(ByteSpan content);
  bool operator==(const ContentHash&) const = default;
};

/// Computes the ContentHash of content that comes in pieces.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();
  ContentHasher(const ContentHasher&) = delete;
  ContentHasher& operator=(const ContentHasher&) = delete;

  void Add(ByteSpan piece);
  [[nodiscard]] ContentHash Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace txfs
