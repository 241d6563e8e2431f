#include "fs/overlay/look_ahead.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace txfs {
namespace {

constexpr Ino kListed{7}, kNeighbour{8};
constexpr uint64_t kLookedAt = 1'000'000;

/// The size of each file is its place among the names.
LookAhead::Entries EntriesOf(Ino directory, std::vector<std::string> names) {
  LookAhead::Entries entries{
      .directory = directory, .time = kLookedAt, .names = names, .stats = {}};
  for (size_t i = 0; i < names.size(); ++i) {
    struct stat st{};
    st.st_size = static_cast<off_t>(i);
    entries.stats.emplace_back(st);
  }
  return entries;
}

std::vector<off_t> SizesOf(const LookAhead::Stats& stats) {
  std::vector<off_t> sizes;
  for (const auto& st : stats) sizes.push_back(st ? st->st_size : -1);
  return sizes;
}

std::vector<off_t> Take(LookAhead& ahead, Ino directory, uint64_t now,
                        const std::vector<std::string_view>& names) {
  return SizesOf(ahead.Take(directory, now, names));
}

TEST(LookAheadTest, GivesTheFirstNamesThatAreAsExpected) {
  LookAhead ahead;
  ahead.Put(EntriesOf(kListed, {"a", "b", "c"}));
  EXPECT_EQ(Take(ahead, kListed, kLookedAt, {"a", "b", "d", "e"}),
            (std::vector<off_t>{0, 1}));
}

TEST(LookAheadTest, GivesThemOnce) {
  LookAhead ahead;
  ahead.Put(EntriesOf(kListed, {"a"}));
  EXPECT_EQ(Take(ahead, kListed, kLookedAt, {"a", "b"}), std::vector<off_t>{0});
  EXPECT_TRUE(Take(ahead, kListed, kLookedAt, {"a"}).empty());
}

TEST(LookAheadTest, OfAnotherDirectoryThereAreNone) {
  LookAhead ahead;
  ahead.Put(EntriesOf(kListed, {"a"}));
  EXPECT_TRUE(Take(ahead, kNeighbour, kLookedAt, {"a"}).empty());
  EXPECT_EQ(Take(ahead, kListed, kLookedAt, {"a"}), std::vector<off_t>{0});
}

TEST(LookAheadTest, AfterATimeThereAreNone) {
  LookAhead ahead;
  ahead.Put(EntriesOf(kListed, {"a"}));
  EXPECT_TRUE(
      Take(ahead, kListed, kLookedAt + LookAhead::kValid + 1, {"a"}).empty());
}

TEST(LookAheadTest, ClearDropsThem) {
  LookAhead ahead;
  ahead.Put(EntriesOf(kListed, {"a"}));
  ahead.Clear();
  EXPECT_TRUE(Take(ahead, kListed, kLookedAt, {"a"}).empty());
}

TEST(LookAheadTest, ManyDirectoriesMakeRoomForEachOther) {
  LookAhead ahead;
  for (uint64_t ino = 1; ino < 100; ++ino) {
    ahead.Put(EntriesOf(Ino{ino}, {"a"}));
    EXPECT_EQ(Take(ahead, Ino{ino}, kLookedAt, {"a"}), std::vector<off_t>{0});
  }
}

}  // namespace
}  // namespace txfs
