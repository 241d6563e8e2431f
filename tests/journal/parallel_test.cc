#include "journal/support/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace txfs {
namespace {

TEST(ParallelTest, VisitsEachNumberOnce) {
  for (const size_t count : {0, 1, 255, 999, 1000, 1025, 50'000}) {
    std::vector<std::atomic<int>> visits(count);
    InParallel(count, [&](size_t i) { ++visits[i]; });
    EXPECT_TRUE(std::ranges::all_of(visits, [](const auto& visited) {
      return visited == 1;
    })) << count;
  }
}

}  // namespace
}  // namespace txfs
