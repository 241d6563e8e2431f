#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "fs/workspace/stored_workspace.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

/// Bytes of this process that are in memory.
[[maybe_unused]] uint64_t ResidentBytes() {
  uint64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

class MemoryTest : public ::testing::Test {
 protected:
  MemoryTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    auto started = CoreDriver::Start(base_.root(), {});
    if (!started) ADD_FAILURE() << started.error().ToString();
    if (started) driver_ = std::move(*started);
  }

  StoredWorkspace& workspace() {
    return dynamic_cast<StoredWorkspace&>(driver_->workspace());
  }
  /// Of `retention`, when what goes on in the background is done.
  void CollectGarbage(const Retention& retention) {
    ASSERT_OK(workspace().CollectGarbage(retention));
  }

  const TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(MemoryTest, EndsThatTheHistoryHasNoMoreAreNotRemembered) {
  constexpr size_t kEnds = 10;
  for (size_t i = 0; i < kEnds; ++i) ASSERT_OK(driver_->Discard());
  ASSERT_OK(workspace().CatchUp());
  ASSERT_EQ(workspace().seen_ends(), kEnds);
  CollectGarbage({.commits = 0});
  ASSERT_OK(driver_->Discard());
  EXPECT_EQ(workspace().seen_ends(), 0U);
}

TEST_F(MemoryTest, ATreeForDiffGoesWithItsTransaction) {
  ASSERT_OK(driver_->WriteFile("file", "1"));
  ASSERT_OK(driver_->MakeSavepoint("s"));
  ASSERT_OK(driver_->WriteFile("file", "2"));
  ASSERT_OK(workspace().ChangesSince("s", "", {}));
  ASSERT_TRUE(workspace().has_past());
  ASSERT_OK(driver_->Discard());
  CollectGarbage({});
  EXPECT_FALSE(workspace().has_past());
}

#ifndef TXFS_SANITIZED  // which has another allocator
TEST_F(MemoryTest, WhatThreadsFreedGoesBackToTheSystemWhenATransactionEnds) {
  constexpr size_t kBlock = 4000, kBlocks = 8000;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  std::thread([&] {
    for (size_t i = 0; i < kBlocks; ++i) {
      blocks.push_back(std::make_unique<std::byte[]>(kBlock));
    }
  }).join();
  // What is last is still in use, so nothing before it goes back by itself.
  blocks.erase(blocks.begin(), blocks.end() - 1);
  const uint64_t before = ResidentBytes();
  ASSERT_OK(driver_->Discard());
  CollectGarbage({});
  EXPECT_LT(ResidentBytes() + kBlock * kBlocks / 2, before);
}
#endif

}  // namespace
}  // namespace txfs::testing
