// The number of changes and the conflicts of a status, which looks at most
// files once, and never at the content of those whose checksums tell enough.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

class StatusTest : public ::testing::Test {
 protected:
  StatusTest() : base_(scratch_.path() + "/ws"), theirs_(base_.root()) {
    mkdir(base_.root().c_str(), 0755);
    for (const char* name : {"f", "d/f", "d/s/f", "d/s/g", "linked"}) {
      base_.File(name, "content");
    }
    EXPECT_OK(theirs_.Link("linked", "other"));
    auto started = CoreDriver::Start(base_.root(), {});
    if (!started) ADD_FAILURE() << started.error().ToString();
    if (started) driver_ = std::move(*started);
  }

  CoreDriver& ours() { return *driver_; }
  Driver& theirs() { return theirs_; }

  /// The number of changes, and the same from a remounted workspace.
  uint64_t Changes() {
    const uint64_t before = Count();
    EXPECT_OK(ours().Remount());
    EXPECT_EQ(Count(), before) << "after a remount";
    return before;
  }

 private:
  uint64_t Count() {
    EXPECT_EQ(FindWrongStatus(ours().workspace()), "");
    const auto status = ours().workspace().GetStatus();
    EXPECT_OK(status);
    return status ? status->changes : 0;
  }

  const TempDir scratch_;
  BaseTree base_;
  PosixDriver theirs_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(StatusTest, CountsFilesOfTheSameSizeByTheirContent) {
  ASSERT_OK(ours().WriteFile("f", "CONTENT"));
  ASSERT_OK(ours().WriteFile("d/f", "content"));  // as it was
  ASSERT_OK(ours().WriteFile("d/s/f", "longer content"));
  EXPECT_EQ(Changes(), 2U);
}

TEST_F(StatusTest, CountsContentThatWasWrittenInParts) {
  for (const auto& [name, second] : {std::pair{"f", "O"}, {"d/f", "o"}}) {
    const auto handle = ours().Open(name, O_WRONLY, 0);
    ASSERT_OK(handle);
    ASSERT_OK(ours().WriteAt(*handle, 0, "c"));
    ASSERT_OK(ours().WriteAt(*handle, 1, second));
    ASSERT_OK(ours().Close(*handle));
  }
  EXPECT_EQ(Changes(), 1U);
}

TEST_F(StatusTest, CountsAttributes) {
  ASSERT_OK(ours().Chmod("f", 0600));
  ASSERT_OK(ours().Chmod("d/f", 0600));
  ASSERT_OK(ours().Chmod("d/f", 0644));
  ASSERT_OK(ours().SetXattr("d/s/f", "user.a", "b", 0));
  ASSERT_OK(ours().SetXattr("d/s/g", "user.a", "b", 0));
  ASSERT_OK(ours().RemoveXattr("d/s/g", "user.a"));
  EXPECT_EQ(Changes(), 2U);
}

TEST_F(StatusTest, CountsWhatMoved) {
  ASSERT_OK(ours().WriteFile("d/s/f", "changed"));
  ASSERT_OK(ours().WriteFile("f", "changed"));
  ASSERT_OK(ours().Rename("d/s", "t", 0));
  ASSERT_OK(ours().Rename("f", "g", 0));
  EXPECT_EQ(Changes(), 3U);
}

TEST_F(StatusTest, CountsWhatIsInAMovedDirectoryThatHasItsPathAgain) {
  ASSERT_OK(ours().WriteFile("d/s/f", "changed"));
  ASSERT_OK(ours().Rename("d", "old", 0));
  ASSERT_OK(ours().Mkdir("d", 0755));
  ASSERT_OK(ours().Rename("old/s", "d/s", 0));
  EXPECT_OK(ours().workspace().GetStatus());
  std::ignore = Changes();
}

TEST_F(StatusTest, CountsAFileOfSeveralNamesByEach) {
  ASSERT_OK(ours().WriteFile("linked", "changed"));
  ASSERT_OK(ours().Stat("other"));
  EXPECT_OK(ours().workspace().GetStatus());
  EXPECT_EQ(FindWrongStatus(ours().workspace()), "");
}

TEST_F(StatusTest, FindsWhatOthersDidMeanwhile) {
  ASSERT_OK(ours().WriteFile("f", "CONTENT"));
  ASSERT_OK(ours().WriteFile("d/f", "CONTENT"));
  ASSERT_OK(ours().WriteFile("d/s/f", "CONTENT"));
  ASSERT_OK(ours().Chmod("d/s/g", 0600));
  EXPECT_EQ(Changes(), 4U);
  // The same as ours, something else, and nothing.
  ASSERT_OK(theirs().WriteFile("f", "CONTENT"));
  ASSERT_OK(theirs().WriteFile("d/f", "Content"));
  ASSERT_OK(theirs().Unlink("d/s/f"));
  ASSERT_OK(theirs().Chmod("d/s/g", 0600));
  const auto full = ours().workspace().GetFullStatus();
  ASSERT_OK(full);
  ASSERT_OK(full->conflicts);
  EXPECT_EQ(full->status.changes, 2U);
  EXPECT_EQ(full->conflicts->size(), 3U);
  EXPECT_EQ(Changes(), 2U);
}

TEST_F(StatusTest, FindsWhatOthersMoved) {
  ASSERT_OK(ours().WriteFile("d/s/f", "CONTENT"));
  ASSERT_OK(ours().WriteFile("f", "CONTENT"));
  ASSERT_OK(theirs().Rename("d", "e", 0));
  ASSERT_OK(theirs().Rename("f", "g", 0));
  ASSERT_OK(theirs().WriteFile("f", "Content"));
  EXPECT_EQ(FindWrongStatus(ours().workspace()), "");
  ASSERT_OK(ours().Remount());
  EXPECT_EQ(FindWrongStatus(ours().workspace()), "");
}

}  // namespace
}  // namespace txfs::testing
