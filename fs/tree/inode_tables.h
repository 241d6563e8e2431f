#pragma once

#include <cstdint>

#include "fs/tree/inode.h"
#include "fs/tree/pointer_table.h"

namespace txfs {

/// What a base object is identified by: the device as BaseOrigin::dev.
struct BaseKey {
  uint64_t dev, ino;
  bool operator==(const BaseKey&) const = default;
};

/// Spreads numbers that follow one another.
constexpr uint64_t HashOf(uint64_t number) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  number = (number ^ (number >> 32)) * kOdd;
  number = (number ^ (number >> 29)) * kOdd;
  return number ^ (number >> 32);
}

struct ByIno {
  static Ino Of(const Inode& inode) { return inode.ino; }
  static uint64_t Hash(Ino ino) { return HashOf(Raw(ino)); }
};
struct ByNumber {
  static uint64_t Of(const Inode& inode) { return inode.number; }
  static uint64_t Hash(uint64_t number) { return HashOf(number); }
};
/// Requires base origin.
struct ByBase {
  static BaseKey Of(const Inode& inode) {
    return {inode.record.base->dev, inode.record.base->ino};
  }
  static uint64_t Hash(const BaseKey& key) {
    return HashOf(key.ino ^ HashOf(key.dev));
  }
};

}  // namespace txfs
