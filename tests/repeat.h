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

/// Which of 1, 2, 3, ... are tried one after the other: all of them, and below
/// a scale of 1 each with that probability. It has a generator of its own, so
/// that what a seed says of the rest is the same at any scale.
class Picks {
 public:
  explicit Picks(uint64_t seed) : random_(seed) {}
  uint64_t Next() {
    do {
      ++point_;
    } while (std::generate_canonical<double, 53>(random_) >= scale_);
    return point_;
  }

 private:
  std::mt19937_64 random_;
  const double scale_ = std::clamp(Scale(), 0.01, 1.0);
  uint64_t point_ = 0;
};

/// $TXFS_TEST_SEED, or a random one. Whoever uses it prints it.
inline uint64_t FirstSeed() {
  const char* given = std::getenv("TXFS_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace txfs
