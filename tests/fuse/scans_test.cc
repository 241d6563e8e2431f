#include <gtest/gtest.h>

#include "fs/fuse/fuse_scans.h"

namespace txfs::testing {
namespace {

constexpr Ino kSome{7}, kOther{8};
constexpr uint64_t kNow = 1'000'000;

TEST(FuseScansTest, OnlyTheFirstEntriesHaveAttributes) {
  FuseScans scans;
  EXPECT_TRUE(scans.WantsAttributes(kSome, 0, kNow));
  EXPECT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
}

TEST(FuseScansTest, AfterALookupInSuchADirectoryAllHaveThemForATime) {
  FuseScans scans;
  ASSERT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
  EXPECT_FALSE(scans.IsScanned(kNow));
  scans.OnLookup(kSome, kNow);
  EXPECT_TRUE(scans.IsScanned(kNow));
  EXPECT_TRUE(scans.WantsAttributes(kOther, 1, kNow));
  EXPECT_TRUE(scans.WantsAttributes(kOther, 1, kNow + FuseScans::kRecent - 1));
  EXPECT_FALSE(scans.WantsAttributes(kOther, 1, kNow + FuseScans::kRecent));
}

TEST(FuseScansTest, ALookupInAnotherDirectorySaysNothing) {
  FuseScans scans;
  ASSERT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
  scans.OnLookup(kOther, kNow);
  EXPECT_FALSE(scans.WantsAttributes(kSome, 2, kNow));
}

TEST(FuseScansTest, AfterAScanForNamesFirstEntriesHaveNoneForATime) {
  FuseScans scans;
  ASSERT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
  EXPECT_FALSE(scans.WantsAttributes(kOther, 0, kNow));
  EXPECT_FALSE(scans.WantsAttributes(kOther, 0, kNow + FuseScans::kRecent - 1));
  EXPECT_TRUE(scans.WantsAttributes(kOther, 0, kNow + FuseScans::kRecent));
}

TEST(FuseScansTest, ALookupEndsTheScanForNames) {
  FuseScans scans;
  ASSERT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
  ASSERT_FALSE(scans.WantsAttributes(kOther, 0, kNow));
  scans.OnLookup(kOther, kNow);
  EXPECT_TRUE(scans.WantsAttributes(Ino{9}, 0, kNow));
  EXPECT_TRUE(scans.WantsAttributes(Ino{9}, 0, kNow + FuseScans::kRecent));
}

TEST(FuseScansTest, TheLastDirectoriesAreRemembered) {
  FuseScans scans;
  for (uint64_t ino = 2; ino < 20; ++ino) {
    ASSERT_FALSE(scans.WantsAttributes(Ino{ino}, 1, kNow));
    ASSERT_FALSE(scans.WantsAttributes(Ino{ino}, 2, kNow));
  }
  scans.OnLookup(Ino{2}, kNow);
  EXPECT_FALSE(scans.WantsAttributes(kSome, 1, kNow));
  scans.OnLookup(Ino{19}, kNow);
  EXPECT_TRUE(scans.WantsAttributes(kSome, 1, kNow));
}

}  // namespace
}  // namespace txfs::testing
