#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "fs/tree/inode_tables.h"

namespace txfs {
namespace {

TEST(InodePagesTest, HasTheInodesInOrder) {
  InodePages pages;
  EXPECT_EQ(pages.Find(Ino{1}), nullptr);
  EXPECT_TRUE(pages.All().empty());
  std::map<Ino, const Inode*> known;
  std::minstd_rand random(1);
  for (int i = 0; i < 5000; ++i) {
    const Ino ino{random() % 1000 + (i % 7 == 0 ? uint64_t{1} << 40 : 0)};
    if (known.erase(ino) != 0) {
      const std::unique_ptr<Inode> taken = pages.Take(ino);
      ASSERT_NE(taken, nullptr);
      EXPECT_EQ(taken->ino, ino);
      EXPECT_EQ(pages.Find(ino), nullptr);
    } else {
      known[ino] = &pages.Insert(std::make_unique<Inode>(ino));
    }
  }
  ASSERT_EQ(pages.size(), known.size());
  const auto all = pages.All();
  ASSERT_EQ(all.size(), known.size());
  auto next = all.begin();
  for (const auto& [ino, inode] : known) {
    EXPECT_EQ(pages.Find(ino), inode);
    EXPECT_EQ(*next++, inode);
  }
}

}  // namespace
}  // namespace txfs
