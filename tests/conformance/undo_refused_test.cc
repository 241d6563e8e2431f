#include <gtest/gtest.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"

namespace txfs::testing {
namespace {

/// More than undo is willing to read.
constexpr uint64_t kVaultedSize = uint64_t{66} << 20;

/// Writes into a file and sets its times back.
Status Overwrite(Driver& base, const std::string& path) {
  const struct stat st = TRY(base.Stat(path));
  TRY(base.PatchFile(path, 1, "X"));
  return base.Utimens(path, {.atime = st.st_atim, .mtime = st.st_mtim});
}

/// Changes the mode and changes it back.
Status Touch(Driver& base, const std::string& path) {
  const struct stat st = TRY(base.Stat(path));
  TRY(base.Chmod(path, 0400));
  return base.Chmod(path, st.st_mode & 07777);
}

/// Gives a file another name for a while, outside of the base.
Status LinkAndUnlink(Driver& base, const std::string& path) {
  TRY(base.Link(path, "../elsewhere"));
  return base.Unlink("../elsewhere");
}

/// What somebody does to the base after the commit, and what undo says to it.
struct SinceCase {
  std::string name;
  std::function<Status(Driver&)> since;
  std::string path, reason;  ///< empty: it is undone
};
void PrintTo(const SinceCase& one, std::ostream* out) { *out << one.name; }

SinceCase Unnoticed(std::string name, std::function<Status(Driver&)> since) {
  return {std::move(name), std::move(since), {}, {}};
}

class UndoTwiceTest : public ::testing::Test {
 protected:
  UndoTwiceTest() : tree_(scratch_.path() + "/ws"), base_(tree_.root()) {
    ::mkdir(tree_.root().c_str(), 0755);
    tree_.File("old", "old content");
    tree_.Xattr("old", "user.there", "before");
    tree_.File("moved", "moved content");
    tree_.SparseFile("large", kVaultedSize);
    tree_.SetTimes();
    auto started = CoreDriver::Start(
        tree_.root(),
        {.journal = {.intake_bytes = 256 << 10, .background_drain = false}});
    EXPECT_OK(started);
    driver_ = std::move(*started);
  }

  /// Content of every kind: new, exchanged, patched in place, only moved.
  Status Work() {
    TRY(driver_->WriteFile("old", "new content"));
    TRY(driver_->Mkdir("d", 0755));
    TRY(driver_->WriteFile("d/f", "in a new directory"));
    TRY(driver_->Rename("moved", "d/moved", 0));
    TRY(driver_->PatchFile("large", 4096, "patched"));
    return driver_->Commit();
  }
  TreeView Base() {
    auto view = ViewWithoutStore(base_);
    EXPECT_OK(view);
    return std::move(*view);
  }
  std::vector<Conflict> Undo() {
    const auto undone = driver_->workspace().Undo("");
    EXPECT_OK(undone);
    return undone ? undone->conflicts : std::vector<Conflict>();
  }

  TempDir scratch_;
  BaseTree tree_;
  PosixDriver base_;
  std::unique_ptr<CoreDriver> driver_;
};

class UndoRefusedTest : public UndoTwiceTest,
                        public ::testing::WithParamInterface<SinceCase> {};

TEST_P(UndoRefusedTest, WhenSomethingChangedSince) {
  const SinceCase& one = GetParam();
  const TreeView before = Base();
  ASSERT_OK(Work());
  scratch_.AwaitTick();
  ASSERT_OK(one.since(base_));
  const TreeView after = Base();
  const std::vector<Conflict> conflicts = Undo();
  if (one.path.empty()) {
    EXPECT_TRUE(conflicts.empty()) << conflicts.front().path;
    EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
    return;
  }
  ASSERT_EQ(conflicts.size(), 1U);
  EXPECT_EQ(conflicts[0].path, one.path);
  EXPECT_EQ(conflicts[0].reason, one.reason);
  EXPECT_EQ(Compare(after, Base(), {}), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, UndoRefusedTest,
    ::testing::Values(
        SinceCase{"OverwrittenFile",
                  [](Driver& base) { return Overwrite(base, "old"); }, "old",
                  "changed"},
        SinceCase{"OverwrittenInANewDirectory",
                  [](Driver& base) { return Overwrite(base, "d/f"); }, "d/f",
                  "changed"},
        SinceCase{"OverwrittenLargeFile",
                  [](Driver& base) { return Overwrite(base, "large"); },
                  "large", "changed"},
        SinceCase{
            "AttributeSet",
            [](Driver& base) { return base.SetXattr("old", "user.x", "", 0); },
            "old", "attributes changed"},
        SinceCase{
            "AttributeOfADirectory",
            [](Driver& base) { return base.SetXattr("d", "user.x", "", 0); },
            "d", "attributes changed"},
        SinceCase{"AttributeChanged",
                  [](Driver& base) {
                    return base.SetXattr("old", "user.there", "after", 0);
                  },
                  "old", "attributes changed"},
        SinceCase{
            "AttributeRemoved",
            [](Driver& base) { return base.RemoveXattr("old", "user.there"); },
            "old", "attributes changed"},
        SinceCase{"AttributeOfAMovedFile",
                  [](Driver& base) {
                    return base.SetXattr("d/moved", "user.x", "", 0);
                  },
                  "d/moved", "attributes changed"},
        Unnoticed("Nothing", [](Driver&) { return Status(); }),
        Unnoticed("ModeThereAndBack",
                  [](Driver& base) -> Status {
                    TRY(Touch(base, "old"));
                    TRY(Touch(base, "d/moved"));
                    return Touch(base, "d/f");
                  }),
        Unnoticed("LinkThatWent",
                  [](Driver& base) { return LinkAndUnlink(base, "d/f"); })),
    [](const auto& test) { return test.param.name; });

// What undo set is not what somebody did, though a ctime is all there is to
// tell the content of a large file by.
TEST_F(UndoTwiceTest, ALaterCommitThatWasUndoneIsNoChange) {
  const TreeView before = Base();
  ASSERT_OK(Work());
  const TreeView between = Base();
  for (const char* path : {"large", "d/f", "d/moved"}) {
    ASSERT_OK(driver_->Chmod(path, 0600));
  }
  ASSERT_OK(driver_->Commit());
  EXPECT_TRUE(Undo().empty());
  EXPECT_EQ(Compare(between, Base(), {.ctime = false}), "");
  EXPECT_TRUE(Undo().empty());
  EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
}

TEST_F(UndoTwiceTest, OfAnEarlierCommitKeepsLaterTimes) {
  const std::string first = driver_->workspace().transaction_id();
  ASSERT_OK(driver_->WriteFile("a", "of the first"));
  ASSERT_OK(driver_->Commit());
  scratch_.AwaitTick();
  ASSERT_OK(driver_->WriteFile("b", "of the second"));
  ASSERT_OK(driver_->Commit());
  const TreeView before = Base();
  const auto undone = driver_->workspace().Undo(first);
  ASSERT_OK(undone);
  EXPECT_EQ(Base().at("").mtime, before.at("").mtime);
  ASSERT_OK(driver_->workspace().Undo(undone->id));
  EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
}

}  // namespace
}  // namespace txfs::testing
