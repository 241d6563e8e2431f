#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr const char* kNoAttributes =
    "no immutable files here: it takes root, and ext4 or the like at $TMPDIR";

/// An attribute of chattr(1) until destruction.
class Attribute {
 public:
  Attribute(const string& path, int flag)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)), flag_(flag) {
    set_ = Change([&](int flags) { return flags | flag_; });
  }
  ~Attribute() {
    Change([&](int flags) { return flags & ~flag_; });
  }
  Attribute(const Attribute&) = delete;
  Attribute& operator=(const Attribute&) = delete;

  /// It takes root, and a filesystem that has them.
  [[nodiscard]] bool is_set() const { return set_; }

 private:
  bool Change(const std::function<int(int)>& change) {
    int flags = 0;
    if (ioctl(fd_.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
    flags = change(flags);
    return ioctl(fd_.get(), FS_IOC_SETFLAGS, &flags) == 0;
  }

  const UniqueFd fd_;
  const int flag_;
  bool set_ = false;
};

struct Work {
  string name;
  std::function<Status(Driver&)> run;
  string locked;  ///< what has the attribute
  int flag = FS_IMMUTABLE_FL;
};
void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

class LockedTest : public ::testing::Test {
 protected:
  LockedTest() : base_(scratch_.path() + "/ws"), plain_(base_.root()) {
    mkdir(base_.root().c_str(), 0755);
    base_.File("f", "old");
    base_.File("linked", "old");
    base_.HardLink("linked", "link");
    base_.File("d/x", "deep");
    base_.File("before", "old");
    base_.SetTimes();
  }
  ~LockedTest() override {
    driver_.reset();
    EXPECT_EQ(FindProblems(base_.root()), "");
  }

  TreeView Base() {
    auto view = ViewTree(plain_);
    EXPECT_OK(view);
    return std::move(view).value_or(TreeView{});
  }

  TempDir scratch_;
  BaseTree base_;
  PosixDriver plain_;
  std::unique_ptr<CoreDriver> driver_;
};

class LockedWorkTest : public LockedTest,
                       public ::testing::WithParamInterface<Work> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, LockedWorkTest,
    ::testing::Values(
        Work{"Writes", [](Driver& fs) { return fs.WriteFile("f", "new"); },
             "f"},
        Work{"Overwrites", [](Driver& fs) { return fs.WriteFile("f", "new"); },
             "f", FS_APPEND_FL},
        Work{"Grows", [](Driver& fs) { return fs.Truncate("f", 500); }, "f",
             FS_APPEND_FL},
        Work{"GrowsAndAppends",
             [](Driver& fs) {
               const Status grown = fs.Truncate("f", 500);
               return grown ? fs.AppendFile("f", "+") : grown;
             },
             "f", FS_APPEND_FL},
        Work{"Deletes", [](Driver& fs) { return fs.Unlink("f"); }, "f"},
        Work{"Renames", [](Driver& fs) { return fs.Rename("f", "g", 0); }, "f",
             FS_APPEND_FL},
        Work{"Links", [](Driver& fs) { return fs.Link("f", "g"); }, "f"},
        Work{"Chmods", [](Driver& fs) { return fs.Chmod("f", 0600); }, "f"},
        Work{"Patches", [](Driver& fs) { return fs.WriteFile("link", "new"); },
             "linked"},
        Work{"TakesANameAway", [](Driver& fs) { return fs.Unlink("link"); },
             "linked"},
        Work{"CreatesInADirectory",
             [](Driver& fs) { return fs.WriteFile("d/n", "new"); }, "d"},
        Work{"DeletesInADirectory", [](Driver& fs) { return fs.Unlink("d/x"); },
             "d", FS_APPEND_FL},
        Work{"MovesADirectory",
             [](Driver& fs) { return fs.Rename("d", "e", 0); }, "d"}),
    [](const auto& test) { return test.param.name; });

TEST_P(LockedWorkTest, IsRefusedWhileNothingIsCommitted) {
  auto started = CoreDriver::Start(base_.root(), {});
  ASSERT_OK(started);
  driver_ = std::move(*started);
  ASSERT_OK(driver_->WriteFile("before", "new"));
  ASSERT_OK(GetParam().run(*driver_));
  // Later: earlier, the operation would have failed.
  auto attribute = std::make_unique<Attribute>(
      base_.root() + "/" + GetParam().locked, GetParam().flag);
  if (!attribute->is_set()) GTEST_SKIP() << kNoAttributes;
  const TreeView before = Base();
  // Setting it changed the time of change, and so may have changed anything.
  const CommitOptions request{.message = "test",
                              .conflicts = {.on_conflict = OnConflict::kMine}};
  const auto report = driver_->workspace().Commit(request);
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().message.starts_with("cannot commit "))
      << report.error().message;
  EXPECT_NE(report.error().hint.find("chattr -"), string::npos);
  EXPECT_EQ(Compare(before, Base(), {}), "");

  attribute.reset();
  const auto committed = driver_->workspace().Commit(request);
  ASSERT_OK(committed);
  EXPECT_EQ(committed->conflicts.size(), 0u);
  EXPECT_EQ(base_.Read("before"), "new");
  ASSERT_OK(driver_->Undo(""));
  EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
}

TEST_F(LockedTest, AnUndoIsRefusedLikewise) {
  auto started = CoreDriver::Start(base_.root(), {});
  ASSERT_OK(started);
  driver_ = std::move(*started);
  ASSERT_OK(driver_->WriteFile("before", "new"));
  ASSERT_OK(driver_->WriteFile("d/n", "new"));
  ASSERT_OK(driver_->workspace().Commit({.message = "test"}));
  const TreeView before = Base();
  const Attribute attribute(base_.root() + "/d/n", FS_IMMUTABLE_FL);
  if (!attribute.is_set()) GTEST_SKIP() << "no immutable files here";
  const Status undone = driver_->Undo("");
  ASSERT_FALSE(undone.has_value());
  EXPECT_EQ(undone.error().message, "cannot commit d/n: it is immutable");
  EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
}

TEST_F(LockedTest, AnAppendIsCommittedAndNotUndone) {
  auto started = CoreDriver::Start(base_.root(), {});
  ASSERT_OK(started);
  driver_ = std::move(*started);
  auto attribute =
      std::make_unique<Attribute>(base_.root() + "/f", FS_APPEND_FL);
  if (!attribute->is_set()) GTEST_SKIP() << kNoAttributes;
  ASSERT_OK(driver_->AppendFile("f", "+"));
  ASSERT_OK(driver_->workspace().Commit({.message = "test"}));
  EXPECT_EQ(base_.Read("f"), "old+");
  const Status undone = driver_->Undo("");
  ASSERT_FALSE(undone.has_value());
  EXPECT_EQ(undone.error().message, "cannot commit f: it is append-only");
  EXPECT_EQ(base_.Read("f"), "old+");
}

/// Attributes are respected at the operation, as on a plain directory.
class LockTest : public ConformanceTest {
 protected:
  void SetUp() override {
    base().File("f", "old");
    base().File("other", "other");
    base().File("d/x", "deep");
    base().Directory("d/sub");
  }
  void TearDown() override {
    ConformanceTest::TearDown();
    attributes_.clear();
  }

  void Lock(const string& path, int flag) {
    fs();
    attributes_.push_back(
        std::make_unique<Attribute>(base().root() + "/" + path, flag));
    if (!attributes_.back()->is_set()) GTEST_SKIP() << kNoAttributes;
    AcceptBase();
  }

  /// pwrite(2) of an X.
  Status Overwrite(const string& path, int flags = 0) {
    const Handle handle = TRY(fs().Open(path, O_WRONLY | flags, 0));
    const auto written = fs().WriteAt(handle, 0, "X");
    TRY(fs().Close(handle));
    TRY(written);
    return {};
  }
  Status Allocate(const string& path, int mode) {
    const Handle handle = TRY(fs().Open(path, O_WRONLY, 0));
    const Status allocated = fs().Allocate(handle, mode, 0, 1);
    TRY(fs().Close(handle));
    return allocated;
  }

  /// What no attribute admits.
  void ExpectNamesStay(const string& path) {
    EXPECT_ERRNO(fs().Unlink(path), EPERM);
    EXPECT_ERRNO(fs().Rename(path, "moved", 0), EPERM);
    EXPECT_ERRNO(fs().Rename("other", path, 0), EPERM);
    EXPECT_ERRNO(fs().Rename("other", path, RENAME_EXCHANGE), EPERM);
  }
  void ExpectAttributesStay(const string& path) {
    EXPECT_ERRNO(fs().Chmod(path, 0600), EPERM);
    EXPECT_ERRNO(fs().Chown(path, 1, 1), EPERM);
    EXPECT_ERRNO(fs().SetXattr(path, "user.x", "1", 0), EPERM);
    FileTimes times;
    times.mtime = {.tv_sec = 1, .tv_nsec = 0};
    EXPECT_ERRNO(fs().Utimens(path, times), EPERM);
  }
  static FileTimes Now() {
    FileTimes now;
    now.atime.tv_nsec = now.mtime.tv_nsec = UTIME_NOW;
    return now;
  }

 private:
  std::vector<std::unique_ptr<Attribute>> attributes_;
};
FOR_EVERY_DRIVER(LockTest);

TEST_P(LockTest, AnImmutableFileStaysAsItIs) {
  Lock("f", FS_IMMUTABLE_FL);
  if (IsSkipped()) return;
  EXPECT_ERRNO(Overwrite("f"), EPERM);
  EXPECT_ERRNO(fs().WriteFile("f", "new"), EPERM);
  EXPECT_ERRNO(fs().AppendFile("f", "+"), EPERM);
  EXPECT_ERRNO(fs().Truncate("f", 1), EPERM);
  EXPECT_ERRNO(Allocate("f", 0), EPERM);
  EXPECT_ERRNO(fs().Link("f", "g"), EPERM);
  EXPECT_ERRNO(fs().Utimens("f", Now()), EPERM);
  ExpectNamesStay("f");
  ExpectAttributesStay("f");
  EXPECT_EQ(Content("f"), "old");
}

TEST_P(LockTest, AnAppendOnlyFileGrows) {
  SkipCommit();  // which cannot set its times
  Lock("f", FS_APPEND_FL);
  if (IsSkipped()) return;
  ASSERT_OK(fs().AppendFile("f", "+"));
  ASSERT_OK(fs().Remount());
  EXPECT_ERRNO(Overwrite("f"), EPERM);
  ASSERT_OK(Overwrite("f", O_APPEND));
  EXPECT_ERRNO(Overwrite("f"), EPERM);
  EXPECT_ERRNO(fs().WriteFile("f", "new"), EPERM);
  EXPECT_ERRNO(fs().Truncate("f", 1), EPERM);
  EXPECT_ERRNO(Allocate("f", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE),
               EPERM);
  EXPECT_ERRNO(fs().Link("f", "g"), EPERM);
  EXPECT_OK(fs().Utimens("f", Now()));
  ExpectNamesStay("f");
  ExpectAttributesStay("f");
  EXPECT_EQ(Content("f"), "old+X");
  Commit();
  EXPECT_EQ(base().Read("f"), "old+X");
  EXPECT_OK(fs().AppendFile("f", "-"));
  EXPECT_EQ(Content("f"), "old+X-");
}

TEST_P(LockTest, AnImmutableDirectoryKeepsItsNames) {
  Lock("d", FS_IMMUTABLE_FL);
  if (IsSkipped()) return;
  EXPECT_ERRNO(fs().WriteFile("d/new", "new"), EPERM);
  EXPECT_ERRNO(fs().Mkdir("d/new", 0755), EPERM);
  EXPECT_ERRNO(fs().Symlink("x", "d/new"), EPERM);
  EXPECT_ERRNO(fs().Mkfifo("d/new", 0644), EPERM);
  EXPECT_ERRNO(fs().Link("other", "d/new"), EPERM);
  EXPECT_ERRNO(fs().Rename("other", "d/new", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("d/x", "d/new", 0), EPERM);
  EXPECT_ERRNO(fs().Rmdir("d/sub"), EPERM);
  EXPECT_ERRNO(fs().Rename("d", "e", 0), EPERM);
  ExpectNamesStay("d/x");
  ExpectAttributesStay("d");
  EXPECT_OK(fs().Chmod("d/x", 0600));
  EXPECT_OK(fs().WriteFile("d/x", "new"));
  EXPECT_OK(fs().WriteFile("d/sub/new", "new"));
}

TEST_P(LockTest, AnAppendOnlyDirectoryGetsNames) {
  SkipCommit();  // which cannot set its times
  Lock("d", FS_APPEND_FL);
  if (IsSkipped()) return;
  EXPECT_OK(fs().WriteFile("d/new", "new"));
  EXPECT_OK(fs().Mkdir("d/made", 0755));
  EXPECT_OK(fs().Link("f", "d/link"));
  EXPECT_OK(fs().Rename("other", "d/brought", 0));
  EXPECT_OK(fs().WriteFile("d/x", "changed"));
  EXPECT_ERRNO(fs().Unlink("d/new"), EPERM);
  EXPECT_ERRNO(fs().Rmdir("d/sub"), EPERM);
  EXPECT_ERRNO(fs().Rename("d/x", "x", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("f", "d/x", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("d", "e", 0), EPERM);
  ExpectAttributesStay("d");
  Commit();
  EXPECT_EQ(base().Read("d/new"), "new");
  EXPECT_EQ(base().Read("d/x"), "changed");
  EXPECT_EQ(base().Read("d/link"), "old");
  EXPECT_EQ(base().Read("d/brought"), "other");
}

}  // namespace
}  // namespace txfs::testing
