#include "fs/tree/extent_map.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace txfs {
namespace {

Extent ExtentAt(uint64_t offset, uint64_t length) {
  Extent extent;
  extent.offset = offset;
  extent.length = length;
  return extent;
}

using Reference = std::map<uint64_t, Extent>;

std::vector<Extent> ForwardsOf(const auto& map) {
  std::vector<Extent> all;
  for (const auto& [offset, extent] : map) {
    EXPECT_EQ(offset, extent.offset);
    all.push_back(extent);
  }
  return all;
}

std::vector<Extent> BackwardsOf(const ExtentMap& map) {
  std::vector<Extent> all;
  for (auto at = map.end(); at != map.begin();) all.push_back((--at)->second);
  return {all.rbegin(), all.rend()};
}

void ExpectSame(const ExtentMap& map, const Reference& reference) {
  const std::vector<Extent> all = ForwardsOf(reference);
  EXPECT_EQ(map.empty(), reference.empty());
  EXPECT_EQ(ForwardsOf(map), all);
  EXPECT_EQ(BackwardsOf(map), all);
  for (uint64_t offset = 0; offset < 6; ++offset) {
    EXPECT_EQ(std::distance(map.begin(), map.upper_bound(offset)),
              std::distance(reference.begin(), reference.upper_bound(offset)));
    EXPECT_EQ(std::distance(map.begin(), map.find(offset)),
              std::distance(reference.begin(), reference.find(offset)));
  }
}

TEST(ExtentMapTest, IsAsAMap) {
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed)
  for (int round = 0; round < 200; ++round) {
    ExtentMap map;
    Reference reference;
    for (int step = 0; step < 30; ++step) {
      const uint64_t offset = random() % 5;
      if (random() % 2 == 0) {
        const Extent extent = ExtentAt(offset, 1 + random() % 3);
        map.Put(extent);
        reference[offset] = extent;
      } else {
        EXPECT_EQ(map.erase(offset), reference.erase(offset) != 0);
      }
      ExpectSame(map, reference);
    }
    map.clear();
    ExpectSame(map, {});
  }
}

TEST(ExtentMapTest, MapsWithTheSameExtentsAreEqual) {
  ExtentMap one;
  ExtentMap other;
  EXPECT_EQ(one, other);
  one.Put(ExtentAt(1, 2));
  EXPECT_NE(one, other);
  other.Put(ExtentAt(1, 2));
  EXPECT_EQ(one, other);
  other.Put(ExtentAt(5, 1));
  EXPECT_NE(one, other);
  EXPECT_NE(other, one);
  EXPECT_TRUE(other.erase(5));
  EXPECT_EQ(one, other);
  other.Put(ExtentAt(1, 3));
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace txfs
