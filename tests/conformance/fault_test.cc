#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iostream>
#include <memory>
#include <random>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/journal/fault_disk.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

constexpr int kSteps = 40;

/// A workspace whose store is on a disk that fails, and a plain directory in
/// which only that happens which was acknowledged there.
class FaultyWorkspace {
 public:
  explicit FaultyWorkspace(uint64_t seed)
      : random_(seed), disk_(scratch_.path() + "/ws/.txfs") {
    BaseTree base(scratch_.path() + "/ws");
    mkdir(base.root().c_str(), 0755);
    base.File("a", "base");
    base.File("b", std::string(100'000, 'b'));
    base.Directory("d");
    const std::string model = scratch_.path() + "/model";
    CopyTree(base.root(), model);
    model_ = std::make_unique<PosixDriver>(model);
    // Which call fails must not depend on what another thread does meanwhile.
    auto started = CoreDriver::Start(
        base.root(),
        {.journal = {.background_drain = false}, .collects = false});
    EXPECT_TRUE(started.has_value());
    if (started) driver_ = std::move(*started);
  }

  void Run(const FaultyDisk::Fault& fault) {
    disk_.Expect(fault);
    for (int i = 0; i < kSteps; ++i) {
      if (i == kSteps * 3 / 4) disk_.Recover();
      const uint64_t seed = random_();
      const Status done = Step(*driver_, seed);
      // What did not happen there must not happen here.
      if (!done && done.error().code == fault.error && disk_.has_failed()) {
        continue;
      }
      const Status expected = Step(*model_, seed);
      EXPECT_EQ(done ? 0 : done.error().code,
                expected ? 0 : expected.error().code)
          << "after " << disk_.failed();
    }
    disk_.Recover();
  }

  /// A discard that fails leaves all as it is: in the mount, for who has a file
  /// open, and after the next mount. Returns whether it failed.
  bool Discard(const FaultyDisk::Fault& fault) {
    const auto opened = driver_->Open("b", O_RDWR, 0);
    const auto model = model_->Open("b", O_RDWR, 0);
    disk_.Expect(fault);
    const Status discarded = driver_->Discard();
    disk_.Recover();
    if (discarded) return false;
    SCOPED_TRACE("after " + disk_.failed() + ": " +
                 discarded.error().ToString());
    if (auto probe = driver_->Mkdir("probe", 0755); !probe) {
      // What is on the disk is not known: all that is left is to go on.
      EXPECT_EQ(probe.error().code, EROFS);
      EXPECT_TRUE(driver_->Discard());
      EXPECT_TRUE(driver_->Mkdir("probe", 0755));
      return true;
    }
    EXPECT_TRUE(driver_->Rmdir("probe"));
    EXPECT_EQ(Differences(), "") << "at once";
    if (opened && model) {
      EXPECT_EQ(driver_->ReadAt(*opened, 0, 200'000).value_or("unreadable"),
                model_->ReadAt(*model, 0, 200'000).value_or("?"));
      EXPECT_TRUE(driver_->WriteAt(*opened, 5, "and on"));
      EXPECT_TRUE(model_->WriteAt(*model, 5, "and on"));
      EXPECT_TRUE(driver_->Close(*opened));
      EXPECT_TRUE(model_->Close(*model));
    }
    ExpectWhatWasAcknowledged();
    return true;
  }

  /// Nor is there room for the next transaction, which begins with the first
  /// change that finds some.
  void DiscardOnAFullDisk() {
    disk_.Expect({.first = 1,
                  .count = UINT64_MAX / 2,
                  .error = ENOSPC,
                  .only_space = true});
    const Status discarded = driver_->Discard();
    EXPECT_TRUE(discarded) << discarded.error().ToString();
    EXPECT_TRUE(disk_.has_failed());
    const Handle file = OpenIn(*driver_, "a");
    EXPECT_EQ(driver_->ReadAt(file, 0, 10).value_or("?"), "base");
    EXPECT_TRUE(driver_->Close(file));
    const Status refused = driver_->Mkdir("later", 0755);
    EXPECT_EQ(refused ? 0 : refused.error().code, ENOSPC);
    EXPECT_TRUE(driver_->Discard());
    disk_.Recover();
    EXPECT_TRUE(driver_->Mkdir("later", 0755));
    EXPECT_TRUE(driver_->Remount());
    EXPECT_TRUE(driver_->Stat("later"));
    EXPECT_TRUE(driver_->Discard());
    EXPECT_FALSE(driver_->Stat("later"));
  }

  void ExpectWhatWasAcknowledged() {
    EXPECT_EQ(Differences(), "");
    const Status remounted = driver_->Remount();
    EXPECT_TRUE(remounted) << remounted.error().ToString();
    EXPECT_EQ(Differences(), "") << "after remount";
  }

  [[nodiscard]] const FaultyDisk& disk() const { return disk_; }

 private:
  static Handle OpenIn(Driver& driver, const std::string& path) {
    return driver.Open(path, O_RDONLY, 0).value_or(Handle{});
  }
  /// One random operation.
  static Status Step(Driver& driver, uint64_t seed);

  std::string Differences() {
    auto expected = ViewTree(*model_);
    auto found = ViewTree(*driver_);
    if (!expected) return expected.error().ToString();
    if (!found) return found.error().ToString();
    // The store counts in the root as a link.
    expected->erase("");
    found->erase("");
    return Compare(*expected, *found,
                   {.ino = false, .ctime = false, .mtime = false});
  }

  std::mt19937_64 random_;
  TempDir scratch_;
  FaultyDisk disk_;
  std::unique_ptr<Driver> model_, driver_;
};

Status WriteSome(Driver& driver, const std::string& path,
                 std::mt19937& random) {
  const Handle file = TRY(driver.Open(path, O_RDWR, 0));
  const size_t size = random() % 3 == 0 ? 50'000 : random() % 5000;
  const std::string bytes(size + 1, static_cast<char>('a' + random() % 26));
  const auto written = driver.WriteAt(file, random() % 100'000, bytes);
  TRY(driver.Close(file));
  TRY(written);
  return {};
}

Status SyncFile(Driver& driver, const std::string& path) {
  const Handle file = TRY(driver.Open(path, O_RDWR, 0));
  const Status synced = driver.Sync(file);
  TRY(driver.Close(file));
  return synced;
}

Status FaultyWorkspace::Step(Driver& driver, uint64_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto any = [&] {
    static constexpr const char* kPaths[] = {"a", "b", "c", "d/e", "d/f", "g"};
    return std::string(kPaths[random() % std::size(kPaths)]);
  };
  const std::string path = any();
  switch (random() % 10) {
    case 0: {
      const Handle file = TRY(driver.Open(path, O_RDWR | O_CREAT, 0644));
      return driver.Close(file);
    }
    case 1:
      return driver.Truncate(path, random() % 120'000);
    case 2:
      return driver.Rename(path, any(), 0);
    case 3:
      return driver.Unlink(path);
    case 4:
      return driver.Chmod(path, random() % 2 ? 0600 : 0640);
    case 5:
      return SyncFile(driver, path);
    case 6:
      return driver.Settle();
    default:
      return WriteSome(driver, path, random);
  }
}

/// Of calls that fail with each error.
constexpr int kFaults = 15;
/// Work makes some calls at least; so much of it makes as many.
constexpr uint64_t kMostWork = 20;

/// Count of calls that fail; a short write.
class StoreFaultTest
    : public ::testing::TestWithParam<std::pair<uint64_t, bool>> {
 protected:
  /// At the first call, at the second, and so on, until there is no such call.
  void FailEverywhere(int error, uint64_t seed) {
    const auto [count, short_write] = GetParam();
    for (uint64_t call = 1;; ++call) {
      SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed) + ", call " +
                   std::to_string(call) + ": " + strerrorname_np(error));
      FaultyWorkspace workspace(seed);
      workspace.Run({call, count, error, short_write});
      workspace.ExpectWhatWasAcknowledged();
      ASSERT_FALSE(HasFailure()) << "after " << workspace.disk().failed();
      if (!workspace.disk().has_failed()) return;
      ++faults_;
    }
  }

  int faults_ = 0;
};

TEST_P(StoreFaultTest, AnOperationSucceedsOrFailsAsTheDiskDid) {
  const uint64_t first = FirstSeed();
  int wanted = 0;
  for (const int error : DiskErrors(first)) {
    wanted += Scaled(kFaults);
    for (uint64_t seed = first; faults_ < wanted && seed < first + kMostWork;
         ++seed) {
      std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
      ASSERT_NO_FATAL_FAILURE(FailEverywhere(error, seed));
    }
  }
  EXPECT_GE(faults_, wanted);
}

/// Lets each call of a discard fail.
void FailDiscards(int error, uint64_t seed) {
  uint64_t failed = 0;
  for (uint64_t call = 1; !::testing::Test::HasFailure(); ++call) {
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed) + ", call " +
                 std::to_string(call) + ": " + strerrorname_np(error));
    FaultyWorkspace workspace(seed + call / 8);
    workspace.Run({});
    // From this call on, so that what is tried instead fails, too.
    if (workspace.Discard({call, 1 + call % 3, error})) ++failed;
    if (!workspace.disk().has_failed()) break;
  }
  // A full disk stops none.
  if (error == EIO) {
    EXPECT_GE(failed, 3U);
  }
}

TEST(DiscardFaultTest, ADiscardThatFailsLeavesTheTransactionAsItIs) {
  const uint64_t seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
  for (const int error : DiskErrors(seed)) FailDiscards(error, seed);
}

TEST(DiscardFaultTest, ADiscardTakesNoSpaceOfTheDisk) {
  FaultyWorkspace workspace(FirstSeed());
  workspace.Run({});
  workspace.DiscardOnAFullDisk();
}

INSTANTIATE_TEST_SUITE_P(Disk, StoreFaultTest,
                         ::testing::Values(std::pair(1, false),
                                           std::pair(1, true),
                                           std::pair(30, false)));

}  // namespace
}  // namespace txfs::testing
