#include "fs/tree/pointer_table.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace txfs {
namespace {

struct Thing {
  uint64_t key;
  bool marked = false;
};

struct ByKey {
  static uint64_t Of(const Thing& thing) { return thing.key; }
  static uint64_t Hash(uint64_t key) {
    key = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15ULL;
    return key ^ (key >> 31);
  }
};

/// All keys meet in one place.
struct ByNothing {
  static uint64_t Of(const Thing& thing) { return thing.key; }
  static uint64_t Hash(uint64_t /*key*/) { return 0xFFFFFFFF00000000ULL; }
};

template <typename Table>
std::set<const Thing*> AllOf(const Table& table) {
  std::set<const Thing*> all;
  for (const Thing* thing : table.slots()) {
    if (thing != nullptr) all.insert(thing);
  }
  return all;
}

template <typename Table>
std::set<const Thing*> AllWith(const Table& table, uint64_t key) {
  std::set<const Thing*> all;
  const Thing* const last = table.FindIf(key, [&](const Thing& thing) {
    all.insert(&thing);
    return false;
  });
  EXPECT_EQ(last, nullptr);
  return all;
}

TEST(PointerTableTest, EmptyOneHasNothing) {
  PointerTable<Thing, ByKey> table;
  const Thing thing{7};
  EXPECT_EQ(table.Find(7), nullptr);
  EXPECT_FALSE(table.Erase(thing));
  EXPECT_EQ(table.size(), 0U);
  EXPECT_TRUE(table.slots().empty());
}

TEST(PointerTableTest, TellsObjectsWithOneKeyApart) {
  PointerTable<Thing, ByKey> table;
  Thing one{7}, two{7, true}, other{8};
  for (Thing* thing : {&one, &two, &other}) table.Insert(*thing);
  EXPECT_EQ(AllWith(table, 7), (std::set<const Thing*>{&one, &two}));
  EXPECT_EQ(table.FindIf(7, [](const Thing& t) { return t.marked; }), &two);
  EXPECT_TRUE(table.Erase(two));
  EXPECT_FALSE(table.Erase(two));
  EXPECT_EQ(AllWith(table, 7), (std::set<const Thing*>{&one}));
  EXPECT_EQ(table.Find(8), &other);
}

/// Random changes, compared with what a multimap tells.
template <typename By>
void CompareWithMap(uint64_t keys, int steps) {
  std::mt19937 random(20);
  PointerTable<Thing, By> table;
  std::vector<std::unique_ptr<Thing>> things;
  std::multimap<uint64_t, const Thing*> model;
  for (int step = 0; step < steps; ++step) {
    // It grows at first, and shrinks in the end.
    const bool adds =
        random() % static_cast<unsigned>(steps) > static_cast<unsigned>(step);
    if (adds || things.empty()) {
      things.push_back(std::make_unique<Thing>(random() % keys));
      model.emplace(things.back()->key, things.back().get());
      table.Insert(*things.back());
    } else {
      std::swap(things[random() % things.size()], things.back());
      const Thing& thing = *things.back();
      ASSERT_TRUE(table.Erase(thing));
      ASSERT_FALSE(table.Erase(thing));
      std::erase_if(model, [&](const auto& e) { return e.second == &thing; });
      things.pop_back();
    }
    ASSERT_EQ(table.size(), model.size());
    const uint64_t key = random() % keys;
    std::set<const Thing*> expected;
    const auto [first, last] = model.equal_range(key);
    for (auto at = first; at != last; ++at) expected.insert(at->second);
    ASSERT_EQ(AllWith(table, key), expected);
  }
  EXPECT_EQ(AllOf(table).size(), table.size());
}

TEST(PointerTableTest, IsAsAMapOfManyKeys) {
  CompareWithMap<ByKey>(100'000, 2000);
}
TEST(PointerTableTest, IsAsAMapOfFewKeys) { CompareWithMap<ByKey>(40, 2000); }
TEST(PointerTableTest, IsAsAMapWhereAllCollide) {
  CompareWithMap<ByNothing>(100, 500);
}

TEST(PointerTableTest, TakesNineBytesPerSlotAndGivesThemBack) {
  PointerTable<Thing, ByKey> table;
  std::vector<Thing> things;
  for (uint64_t key = 0; key < 10'000; ++key) things.push_back({key});
  for (Thing& thing : things) {
    table.Insert(thing);
    ASSERT_LE(table.size() * 5, table.slots().size() * 4);
  }
  EXPECT_LT(table.slots().size(), 20'000U);
  // The last ones, and so that no search meets an end too early.
  for (size_t i = 0; i + 10 < things.size(); ++i) table.Erase(things[i]);
  EXPECT_LE(table.slots().size(), 40U);
  for (size_t i = things.size() - 10; i < things.size(); ++i) {
    EXPECT_EQ(table.Find(i), &things[i]);
  }
}

TEST(PointerTableTest, StaysSmallWhereObjectsComeAndGo) {
  PointerTable<Thing, ByKey> table;
  for (uint64_t key = 0; key < 10'000; ++key) {
    Thing thing{key};
    table.Insert(thing);
    ASSERT_TRUE(table.Erase(thing));
  }
  EXPECT_EQ(table.slots().size(), 8U);
}

TEST(PointerTableTest, HasRoomForWhatIsReserved) {
  PointerTable<Thing, ByKey> table;
  table.Reserve(100);
  const size_t slots = table.slots().size();
  std::vector<Thing> things;
  for (uint64_t key = 0; key < 100; ++key) things.push_back({key});
  for (Thing& thing : things) table.Insert(thing);
  EXPECT_EQ(table.slots().size(), slots);
  for (Thing& thing : things) EXPECT_EQ(table.Find(thing.key), &thing);
  table.Reserve(10);
  EXPECT_EQ(table.size(), 100U);
}

}  // namespace
}  // namespace txfs
