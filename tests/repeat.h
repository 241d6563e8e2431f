#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace txfs {

/// How often to repeat: `quick` times $TXFS_TEST_SCALE (a number, 1 when
/// unset).
inline int Scaled(int quick) {
  const char* scale = std::getenv("TXFS_TEST_SCALE");
  return std::max(1,
                  static_cast<int>(quick * (scale ? std::atof(scale) : 1.0)));
}

/// $TXFS_TEST_SEED, or a random one. Whoever uses it prints it.
inline uint64_t FirstSeed() {
  const char* given = std::getenv("TXFS_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace txfs
