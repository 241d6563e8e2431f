#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "journal/support/types.h"

namespace txfs {

/// Disjoint ranges: from → to.
using RangeMap = std::map<uint64_t, uint64_t>;

inline uint64_t TotalBytes(const std::vector<Range>& ranges) {
  uint64_t bytes = 0;
  for (const Range& range : ranges) bytes += range.to - range.from;
  return bytes;
}

/// The parts of `ranges` within `range`, in order.
inline std::vector<Range> Within(const RangeMap& ranges, Range range) {
  std::vector<Range> parts;
  auto at = ranges.upper_bound(range.from);
  if (at != ranges.begin()) --at;
  for (; at != ranges.end() && at->first < range.to; ++at) {
    const Range part{std::max(at->first, range.from),
                     std::min(at->second, range.to)};
    if (part.from < part.to) parts.push_back(part);
  }
  return parts;
}

/// The parts of `range` that are in none of `ranges`, in order.
inline std::vector<Range> Outside(const RangeMap& ranges, Range range) {
  std::vector<Range> parts;
  for (const Range& part : Within(ranges, range)) {
    if (range.from < part.from) parts.push_back({range.from, part.from});
    range.from = part.to;
  }
  if (range.from < range.to) parts.push_back(range);
  return parts;
}

/// Removes `range` from `ranges`. Returns what was removed, in order.
inline std::vector<Range> TakeAway(RangeMap& ranges, Range range) {
  std::vector<Range> taken = Within(ranges, range);
  for (const Range& part : taken) {
    const auto at = std::prev(ranges.upper_bound(part.from));
    const Range whole{at->first, at->second};
    ranges.erase(at);
    if (whole.from < part.from) ranges[whole.from] = part.from;
    if (part.to < whole.to) ranges[part.to] = whole.to;
  }
  return taken;
}

}  // namespace txfs
