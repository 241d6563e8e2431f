#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>

namespace txfs {

/// $TXFS_TEST_SCALE, a number; 1 when unset.
inline double Scale() {
  const char* scale = std::getenv("TXFS_TEST_SCALE");
  return scale ? std::atof(scale) : 1.0;
}

/// How often to repeat: `quick` times the scale.
inline int Scaled(int quick) {
  return std::max(1, static_cast<int>(quick * Scale()));
}

/// How far to the next of what is tried one after the other: 1, which leaves
/// none out, and below a scale of 1 at random, as many as the scale says.
inline uint64_t Stride(std::mt19937_64& random) {
  const double mean = 1 / std::clamp(Scale(), 0.01, 1.0);
  return 1 + random() % static_cast<uint64_t>(2 * mean - 1);
}

/// $TXFS_TEST_SEED, or a random one. Whoever uses it prints it.
inline uint64_t FirstSeed() {
  const char* given = std::getenv("TXFS_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace txfs
