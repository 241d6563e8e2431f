#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "journal/support/ranges.h"
#include "journal/support/types.h"

namespace txfs {

/// The parts of a file for which fallocate(2) set disk space aside, and which
/// have no content yet.
class Reservation {
 public:
  /// `needed`: bytes that all reservations need; it has what Add gets already.
  explicit Reservation(std::atomic<uint64_t>& needed) : needed_(needed) {}
  ~Reservation() { needed_ -= bytes_; }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t BytesIn(Range range) const {
    return TotalBytes(Within(ranges_, range));
  }
  /// The parts of `range` that it does not have.
  [[nodiscard]] std::vector<Range> Missing(Range range) const {
    return Outside(ranges_, range);
  }
  /// Parts that it does not have.
  void Add(const std::vector<Range>& ranges) {
    for (const Range& range : ranges) ranges_[range.from] = range.to;
    bytes_ += TotalBytes(ranges);
  }
  /// The range was written. Returns the bytes that the reservation had of it,
  /// which `needed` is already without.
  uint64_t Use(Range range) {
    const uint64_t used = TotalBytes(TakeAway(ranges_, range));
    bytes_ -= used;
    return used;
  }
  /// The range needs no space any more.
  void Drop(Range range) { needed_ -= Use(range); }

 private:
  RangeMap ranges_;
  uint64_t bytes_ = 0;
  std::atomic<uint64_t>& needed_;
};

}  // namespace txfs
