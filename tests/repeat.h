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

/// Number of repetitions: `quick` times the scale, at least 1.
inline int Scaled(int quick) {
  return std::max(1, static_cast<int>(quick * Scale()));
}

/// Selects from 1, 2, 3, ... in order: all numbers, or with a scale below 1
/// each with that probability. It has its own generator, so that the scale does
/// not change the other random choices of a seed.
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

/// $TXFS_TEST_SEED, or a random seed. The caller prints it.
inline uint64_t FirstSeed() {
  const char* given = std::getenv("TXFS_TEST_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

}  // namespace txfs
