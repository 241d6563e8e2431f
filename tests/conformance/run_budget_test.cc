#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/workspace/workspace.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// What Workspace::LimitRun refuses.
class RunBudgetTest : public ::testing::Test {
 protected:
  RunBudgetTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    base_.File("f", "old");
    auto started = CoreDriver::Start(base_.root(), {});
    EXPECT_TRUE(started) << started.error().ToString();
    if (started) driver_ = std::move(*started);
  }
  ~RunBudgetTest() override {
    if (driver_) EXPECT_OK(driver_->Remount());
  }

  CoreDriver& fs() { return *driver_; }
  void Limit(const RunLimits& limits) {
    driver_->workspace().LimitRun(limits, [this](RunLimit limit) {
      ++(limit == RunLimit::kBytes ? bytes_exceeded_ : objects_exceeded_);
    });
  }
  Status Write(const string& path, uint64_t offset, size_t size) {
    const Handle file = TRY(fs().Open(path, O_RDWR | O_CREAT, 0644));
    const auto written = fs().WriteAt(file, offset, string(size, 'x'));
    TRY(fs().Close(file));
    if (!written) return std::unexpected(written.error());
    EXPECT_EQ(*written, size);
    return {};
  }
  Status Allocate(const string& path, uint64_t offset, uint64_t size) {
    const Handle file = TRY(fs().Open(path, O_RDWR | O_CREAT, 0644));
    const Status done = fs().Allocate(file, 0, offset, size);
    TRY(fs().Close(file));
    return done;
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
  std::atomic<int> bytes_exceeded_ = 0, objects_exceeded_ = 0;
};

TEST_F(RunBudgetTest, LetsThroughWhatItSaysToTheByte) {
  Limit({.bytes = 100'000});
  ASSERT_OK(Write("f", 0, 60'000));
  ASSERT_OK(Write("g", 1 << 20, 40'000));
  EXPECT_EQ(bytes_exceeded_, 0);
  EXPECT_ERRNO(Write("g", 0, 1), EDQUOT);
  EXPECT_EQ(bytes_exceeded_, 1);
  EXPECT_EQ(fs().Stat("g")->st_size, (1 << 20) + 40'000);
  EXPECT_EQ(fs().ReadRange("g", 0, 1).value_or("?"), string(1, '\0'));
}

TEST_F(RunBudgetTest, CountsWhatIsOverwrittenAndDeleted) {
  Limit({.bytes = 30'000});
  ASSERT_OK(Write("g", 0, 10'000));
  ASSERT_OK(Write("g", 0, 10'000));
  ASSERT_OK(fs().Unlink("g"));
  EXPECT_ERRNO(Write("h", 0, 10'001), EDQUOT);
  // What was refused took nothing.
  EXPECT_OK(Write("h", 0, 10'000));
}

TEST_F(RunBudgetTest, DoesNotCountSizeWithoutContent) {
  Limit({.bytes = 10});
  ASSERT_OK(Write("sparse", 0, 1));
  ASSERT_OK(fs().Truncate("sparse", 1ULL << 40));
  ASSERT_OK(fs().Truncate("sparse", 5));
  ASSERT_OK(fs().Rename("f", "g", 0));
  EXPECT_OK(Write("sparse", 1ULL << 30, 9));
}

TEST_F(RunBudgetTest, CountsReservedSpaceOnce) {
  Limit({.bytes = 3 << 20});
  EXPECT_ERRNO(Allocate("g", 0, 4 << 20), EDQUOT);
  ASSERT_OK(Allocate("g", 0, 2 << 20));
  ASSERT_OK(Write("g", 0, 2 << 20));
  // There is content now.
  EXPECT_OK(Write("g", 0, 1 << 20));
  EXPECT_ERRNO(Write("g", 0, 1), EDQUOT);
}

TEST_F(RunBudgetTest, CountsAttributesAndTargets) {
  Limit({.bytes = 10});
  ASSERT_OK(fs().SetXattr("f", "user.a", "12345", 0));
  EXPECT_ERRNO(fs().SetXattr("f", "user.b", "123456", 0), EDQUOT);
  ASSERT_OK(fs().Symlink("12345", "link"));
  EXPECT_ERRNO(fs().Symlink("1", "other"), EDQUOT);
  EXPECT_EQ(fs().Stat("other").error().code, ENOENT);
}

TEST_F(RunBudgetTest, CountsTheContentOfFilesWithoutAName) {
  Limit({.bytes = 100'000, .objects = 1});
  const auto file = fs().Open("", O_TMPFILE | O_RDWR, 0644);
  ASSERT_OK(file);
  ASSERT_OK(fs().WriteAt(*file, 0, string(90'000, 'x')));
  EXPECT_ERRNO(fs().WriteAt(*file, 0, string(10'001, 'x')), EDQUOT);
  EXPECT_OK(fs().LinkOf(*file, "named"));
  EXPECT_OK(fs().Close(*file));
  EXPECT_ERRNO(fs().Open("", O_TMPFILE | O_RDWR, 0644), EDQUOT);
}

TEST_F(RunBudgetTest, CountsObjectsOfEachKindAsTheyAreMade) {
  Limit({.objects = 5});
  ASSERT_OK(Write("a", 0, 1 << 20));
  ASSERT_OK(fs().Mkdir("d", 0755));
  ASSERT_OK(fs().Symlink("a", "s"));
  ASSERT_OK(fs().Mkfifo("p", 0644));
  // These make none.
  ASSERT_OK(fs().Link("a", "b"));
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(Write("f", 0, 10));
  EXPECT_ERRNO(fs().Mkdir("e", 0755), EEXIST);
  ASSERT_OK(fs().Unlink("s"));
  ASSERT_OK(Write("c", 0, 1));
  EXPECT_EQ(objects_exceeded_, 0);
  EXPECT_ERRNO(fs().Mkdir("more", 0755), EDQUOT);
  EXPECT_EQ(objects_exceeded_, 1);
  EXPECT_EQ(bytes_exceeded_, 0);
}

TEST_F(RunBudgetTest, BoundsWhatTheJournalNotes) {
  Limit({.bytes = 1 << 20, .notes = 10'000});
  Status done;
  int renames = 0;
  for (; done && renames < 1000; ++renames) {
    done = fs().Rename(renames % 2 == 0 ? "f" : "g",
                       renames % 2 == 0 ? "g" : "f", 0);
  }
  EXPECT_ERRNO(done, EDQUOT);
  EXPECT_GT(renames, 5);
  EXPECT_EQ(bytes_exceeded_, 1);
  EXPECT_EQ(RunLimits::Of(0, 5).notes, 0U);
  EXPECT_GT(RunLimits::Of(1, 5).notes, 1U << 20);
}

TEST_F(RunBudgetTest, EndsWithTheRun) {
  Limit({.bytes = 10, .objects = 1});
  ASSERT_OK(Write("a", 0, 10));
  EXPECT_ERRNO(Write("b", 0, 1), EDQUOT);
  fs().workspace().LimitRun({}, {});
  EXPECT_OK(Write("b", 0, 1 << 20));
  // The next one begins at 0.
  Limit({.bytes = 10});
  EXPECT_OK(Write("c", 0, 10));
}

TEST_F(RunBudgetTest, LetsNoMoreThroughInParallel) {
  constexpr int kThreads = 4;
  constexpr size_t kPart = 30'000;
  constexpr uint64_t kLimit = 2'000'000;
  Filesystem& core = fs().workspace().filesystem();
  std::vector<Ino> files;
  for (int i = 0; i < kThreads; ++i) {
    const auto made = core.Create({}, kRootIno, "t" + std::to_string(i), 0644);
    ASSERT_OK(made);
    files.push_back(made->ino);
  }
  Limit({.bytes = kLimit});
  std::atomic<uint64_t> written = 0;
  std::vector<std::thread> threads;
  for (const Ino file : files) {
    threads.emplace_back([&, file] {
      const string piece(kPart, 'x');
      for (uint64_t at = 0; core.Write({}, file, at, AsBytes(piece), {});
           at += kPart) {
        written += kPart;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // As much as fits, and no more.
  EXPECT_EQ(written, kLimit / kPart * kPart);
  EXPECT_EQ(bytes_exceeded_, kThreads);
  for (const Ino file : files) core.Forget(file, 1);
}

}  // namespace
}  // namespace txfs::testing
