#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <functional>
#include <memory>
#include <string>

#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

using ::std::string;

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
        Work{"Appends", [](Driver& fs) { return fs.AppendFile("f", "+"); }, "f",
             FS_APPEND_FL},
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
        Work{"WritesInADirectory",
             [](Driver& fs) { return fs.WriteFile("d/x", "new"); }, "d"},
        Work{"DeletesInADirectory", [](Driver& fs) { return fs.Unlink("d/x"); },
             "d", FS_APPEND_FL},
        Work{"MovesADirectory",
             [](Driver& fs) { return fs.Rename("d", "e", 0); }, "d"}),
    [](const auto& test) { return test.param.name; });

TEST_P(LockedWorkTest, IsRefusedWhileNothingIsCommitted) {
  auto attribute = std::make_unique<Attribute>(
      base_.root() + "/" + GetParam().locked, GetParam().flag);
  if (!attribute->is_set()) {
    GTEST_SKIP() << "no immutable files here: it takes root, and ext4 or the "
                    "like at "
                 << scratch_.path();
  }
  auto started = CoreDriver::Start(base_.root(), {});
  ASSERT_OK(started);
  driver_ = std::move(*started);
  ASSERT_OK(driver_->WriteFile("before", "new"));
  ASSERT_OK(GetParam().run(*driver_));
  const TreeView before = Base();
  const auto report = driver_->workspace().Commit({.message = "test"});
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().message.starts_with("cannot commit "))
      << report.error().message;
  EXPECT_NE(report.error().hint.find("chattr -"), string::npos);
  EXPECT_EQ(Compare(before, Base(), {}), "");

  attribute.reset();
  // Which changed the time of change, and so may have changed anything.
  const auto committed = driver_->workspace().Commit(
      {.message = "test", .conflicts = {.on_conflict = OnConflict::kMine}});
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

}  // namespace
}  // namespace txfs::testing
