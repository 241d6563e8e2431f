#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>

#include "fs/base/base_directory.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

const std::string kName(20, 'd');

/// A workspace with one chain of directories, and a file in each.
class Chain {
 public:
  explicit Chain(int depth) : depth_(depth) {
    const std::string path = scratch_.path() + "/ws";
    EXPECT_EQ(::mkdir(path.c_str(), 0755), 0);
    auto started = CoreDriver::Start(path, {.collects = false});
    EXPECT_TRUE(started);
    if (started) driver_ = std::move(*started);
  }

  /// In the transaction.
  void Make() {
    Ino at = kRootIno;
    for (int i = 0; i < depth_; ++i) {
      const auto below = fs().MakeDirectory(kCaller, at, kName, 0755);
      ASSERT_TRUE(below);
      at = below->ino;
      ASSERT_TRUE(fs().Create(kCaller, at, "f", 0644));
    }
  }

  /// Every file of it.
  void Change() {
    Ino at = kRootIno;
    for (int i = 0; i < depth_; ++i) {
      const auto below = fs().Lookup(at, kName);
      ASSERT_TRUE(below);
      at = below->ino;
      const auto file = fs().Lookup(at, "f");
      ASSERT_TRUE(file);
      ASSERT_TRUE(
          fs().Write(kCaller, file->ino, 0, AsBytes("changed"), WriteMode{}));
    }
  }

  Workspace& workspace() { return driver_->workspace(); }
  Status Commit() { return driver_->Commit(); }
  Status Undo() { return driver_->Undo(""); }
  Status Discard() { return driver_->Discard(); }

 private:
  static constexpr Caller kCaller{};
  Filesystem& fs() { return driver_->workspace().filesystem(); }

  const int depth_;
  TempDir scratch_;
  std::unique_ptr<CoreDriver> driver_;
};

/// The bytes of paths that `work` has the kernel walk.
template <class Work>
uint64_t WalkedBy(const Work& work) {
  const uint64_t before = BaseDirectory::walked();
  work();
  return BaseDirectory::walked() - before;
}

constexpr int kDepth = 300;
/// What is linear doubles with the depth; what is not becomes four times as
/// much.
constexpr double kAtMost = 3;

TEST(DeepTest, ADeepNewTreeIsCommittedInFewSteps) {
  Chain chain(kDepth);
  chain.Make();
  const auto plan = chain.workspace().PlanOnly({});
  ASSERT_TRUE(plan);
  EXPECT_LT(plan->steps.size(), kDepth / 10U);
  ASSERT_TRUE(chain.Commit());
  ASSERT_TRUE(chain.Undo());
  const auto left = chain.workspace().Changes(false);
  ASSERT_TRUE(left);
  EXPECT_TRUE(left->empty());
}

TEST(DeepTest, WhatACommandWalksOfADeepTreeDoublesWithItsDepth) {
  struct Walked {
    uint64_t status_of_new = 0, status = 0, commit = 0, undo = 0, discard = 0;
  };
  const auto walk = [](int depth) {
    Walked walked;
    Chain chain(depth);
    chain.Make();
    walked.status_of_new =
        WalkedBy([&] { EXPECT_TRUE(chain.workspace().Changes(true)); });
    EXPECT_TRUE(chain.Commit());
    chain.Change();
    walked.status =
        WalkedBy([&] { EXPECT_TRUE(chain.workspace().Changes(true)); });
    walked.commit = WalkedBy([&] { EXPECT_TRUE(chain.Commit()); });
    walked.undo = WalkedBy([&] { EXPECT_TRUE(chain.Undo()); });
    chain.Change();
    walked.discard = WalkedBy([&] { EXPECT_TRUE(chain.Discard()); });
    return walked;
  };
  const Walked once = walk(kDepth);
  const Walked twice = walk(2 * kDepth);
  const auto expect_linear = [](const char* what, uint64_t a, uint64_t b) {
    EXPECT_LT(static_cast<double>(b), kAtMost * static_cast<double>(a) + 10'000)
        << what << ": " << a << " and " << b;
  };
  expect_linear("status of what is new", once.status_of_new,
                twice.status_of_new);
  expect_linear("status", once.status, twice.status);
  expect_linear("commit", once.commit, twice.commit);
  expect_linear("undo", once.undo, twice.undo);
  expect_linear("discard", once.discard, twice.discard);
}

}  // namespace
}  // namespace txfs::testing
