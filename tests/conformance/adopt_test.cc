#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <set>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

/// A commit that makes segments of the spool files of the base.
class AdoptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    Start();
    for (size_t i = 0; i < content_.size(); i += 777) {
      content_[i] = static_cast<char>(i);
    }
  }

  void Start() {
    auto started = CoreDriver::Start(
        base_.root(),
        {.journal = {.intake_bytes = 256 << 10, .background_drain = false}});
    ASSERT_OK(started);
    driver_ = std::move(*started);
  }

  CoreDriver& fs() { return *driver_; }

  /// Inode numbers of the segments.
  std::set<uint64_t> Segments() {
    std::set<uint64_t> inos;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             base_.root() + "/.txfs/txn")) {
      if (entry.path().parent_path().filename() != "spool") continue;
      inos.insert(Stat(entry.path()).st_ino);
    }
    return inos;
  }

  struct stat Stat(const std::string& path) {
    struct stat st{};
    EXPECT_EQ(lstat(path.c_str(), &st), 0) << path;
    return st;
  }
  struct stat StatBase(const std::string& path) {
    return Stat(base_.root() + "/" + path);
  }

  std::string content_ = std::string(3 << 20, 'x');
  TempDir scratch_;
  BaseTree base_{scratch_.path() + "/ws"};
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(AdoptTest, TheSegmentOfALargeFileBecomesTheFile) {
  ASSERT_OK(fs().WriteFile("large", content_));
  ASSERT_OK(fs().PatchFile("large", 1000, "patched"));
  content_.replace(1000, 7, "patched");
  ASSERT_OK(fs().Chmod("large", 0640));
  const auto segments = Segments();
  ASSERT_OK(fs().Commit());
  const struct stat st = StatBase("large");
  EXPECT_TRUE(segments.contains(st.st_ino));
  EXPECT_EQ(st.st_nlink, 1U);
  EXPECT_EQ(st.st_mode & 07777, 0640U);
  EXPECT_EQ(base_.Read("large"), content_);
  EXPECT_EQ(fs().ReadFile("large").value(), content_);
  ASSERT_OK(fs().AppendFile("large", "more"));
  EXPECT_EQ(base_.Read("large"), content_);
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("large"), content_ + "more");
}

TEST_F(AdoptTest, HolesAreHoles) {
  ASSERT_OK(fs().WriteFile("large", content_));
  ASSERT_OK(fs().Truncate("large", 5 << 20));
  const auto segments = Segments();
  ASSERT_OK(fs().Commit());
  EXPECT_TRUE(segments.contains(StatBase("large").st_ino));
  content_.resize(5 << 20);
  EXPECT_EQ(base_.Read("large"), content_);
}

TEST_F(AdoptTest, WhatTheJournalMayNeedIsCopied) {
  ASSERT_OK(fs().WriteFile("patched", content_));
  ASSERT_OK(fs().PatchFile("patched", 2'000'000, "in a record"));
  ASSERT_OK(fs().WriteFile("cut", content_));
  ASSERT_OK(fs().Truncate("cut", content_.size() - 1));
  const auto segments = Segments();
  ASSERT_OK(fs().Commit());
  EXPECT_FALSE(segments.contains(StatBase("patched").st_ino));
  EXPECT_FALSE(segments.contains(StatBase("cut").st_ino));
  EXPECT_EQ(base_.Read("cut"), content_.substr(0, content_.size() - 1));
  content_.replace(2'000'000, 11, "in a record");
  EXPECT_EQ(base_.Read("patched"), content_);
}

TEST_F(AdoptTest, WhatASavepointMayNeedIsCopied) {
  ASSERT_OK(fs().WriteFile("large", content_));
  ASSERT_OK(fs().MakeSavepoint("s"));
  const auto segments = Segments();
  ASSERT_OK(fs().Commit());
  EXPECT_FALSE(segments.contains(StatBase("large").st_ino));
  EXPECT_EQ(base_.Read("large"), content_);
}

TEST_F(AdoptTest, WhatIsCopiedIsHeardOfBeforeItIsDone) {
  ASSERT_OK(fs().WriteFile("large", content_));
  ASSERT_OK(fs().workspace().MakeSavepoint("s"));
  ASSERT_OK(fs().PatchFile("large", 0, "patched"));
  int before_any = 0;
  ASSERT_OK(fs().workspace().Commit({}, [&](size_t done, size_t) {
    if (done == 0) ++before_any;
  }));
  EXPECT_GE(before_any, 2);
}

TEST_F(AdoptTest, ACommitThatFailsLeavesTheJournalItsSegment) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  driver_.reset();
  const TempMount full(base_.root() + "/full", "size=1m");
  Start();
  ASSERT_OK(fs().WriteFile("large", content_));
  ASSERT_OK(fs().WriteFile("full/large", content_));
  EXPECT_ERRNO(fs().Commit(), ENOSPC);
  EXPECT_EQ(FindProblems(base_.root()), "");
  ASSERT_OK(fs().AppendFile("large", content_));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(fs().ReadFile("large").value(), content_ + content_);
  ASSERT_OK(fs().Unlink("full/large"));
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("large"), content_ + content_);
}

}  // namespace
}  // namespace txfs::testing
