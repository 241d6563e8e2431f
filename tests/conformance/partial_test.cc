#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fs/workspace/workspace.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr ViewRules kInodesMayDiffer{.ino = false, .ctime = false};

Status ExchangeTops(Driver& fs) {
  TRY(fs.Rename("p", "q", RENAME_EXCHANGE));
  return fs.Rename("q/d", "p/d", 0);
}
Status MakeTheTopAnew(Driver& fs) {
  TRY(fs.Rename("p", "old", 0));
  TRY(fs.Mkdir("p", 0755));
  return fs.Rename("old/d", "p/d", 0);
}
Status MoveTheTopTwice(Driver& fs) {
  TRY(fs.Rename("p", "q/p", 0));
  TRY(fs.Rename("q", "p", 0));
  return fs.Rename("p/p/d", "p/d", 0);
}

struct Way {
  const char* name;
  Status (*move)(Driver& fs);
};
std::ostream& operator<<(std::ostream& out, const Way& way) {
  return out << way.name;
}

/// What is done in p/d once it is in place again, and what of it is committed
/// by itself.
struct Rest {
  const char* name;
  Status (*work)(Driver& fs);
  const char* part;
};
std::ostream& operator<<(std::ostream& out, const Rest& rest) {
  return out << rest.name;
}

Status MakeNew(Driver& fs) { return fs.WriteFile("p/d/n", "new"); }

constexpr Way kWays[] = {{"Exchange", ExchangeTops},
                         {"NewDirectory", MakeTheTopAnew},
                         {"IntoItself", MoveTheTopTwice}};
constexpr Rest kRests[] = {
    {"ChangedFile",
     [](Driver& fs) -> Status {
       TRY(fs.WriteFile("p/d/f", "changed"));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"DeletedFile",
     [](Driver& fs) -> Status {
       TRY(fs.Unlink("p/d/f"));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"MovedFile",
     [](Driver& fs) -> Status {
       TRY(fs.Rename("p/d/f", "moved", 0));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"LinkedFile",
     [](Driver& fs) -> Status {
       TRY(fs.Link("p/d/f", "linked"));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"Mode",
     [](Driver& fs) -> Status {
       TRY(fs.Chmod("p/d/s", 0700));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"NewBelow",
     [](Driver& fs) -> Status {
       TRY(fs.WriteFile("p/d/s/new", "new"));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"MovedDirectory",
     [](Driver& fs) -> Status {
       TRY(fs.Rename("p/d/s", "s", 0));
       TRY(fs.WriteFile("s/g", "changed"));
       return MakeNew(fs);
     },
     "p/d/n"},
    {"ChangedBeside",
     [](Driver& fs) -> Status {
       TRY(fs.WriteFile("p/d/s/g", "changed"));
       return fs.WriteFile("p/d/s/m", "new");
     },
     "p/d/s/m"},
};

/// A directory above p/d moved away, and p/d into what has its name now: its
/// path is what it was, and yet it moved.
class SamePlaceTest
    : public ::testing::TestWithParam<std::tuple<Way, Rest, bool>> {
 protected:
  SamePlaceTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    base_.File("p/d/f", "f");
    base_.File("p/d/s/g", "g");
    base_.File("p/h", "h");
    base_.File("q/k", "k");
    base_.SetTimes();
  }
  void Start() {
    auto driver = CoreDriver::Start(
        base_.root(), {.keep_lookups = std::get<bool>(GetParam())});
    ASSERT_OK(driver);
    driver_ = std::move(*driver);
  }
  CoreDriver& fs() { return *driver_; }
  void ExpectView(const TreeView& expected, Driver& driver,
                  const string& where) {
    const auto view = ViewWithoutStore(driver);
    ASSERT_OK(view);
    EXPECT_EQ(Compare(expected, *view, kInodesMayDiffer), "") << where;
  }
  void ExpectNoConflict() {
    const auto conflicts = fs().workspace().FindConflicts();
    ASSERT_OK(conflicts);
    EXPECT_OK(NoConflicts(*conflicts));
  }

  const TempDir scratch_{MemoryDirectory()};
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_P(SamePlaceTest, TheCommitOfAPartLeavesTheRestWhereItIs) {
  const auto& [way, rest, keep_lookups] = GetParam();
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_OK(way.move(fs()));
  ASSERT_OK(rest.work(fs()));
  const auto view = ViewWithoutStore(fs());
  ASSERT_OK(view);
  const auto part = fs().workspace().Commit({.paths = {rest.part}});
  ASSERT_OK(part);
  ASSERT_OK(NoConflicts(part->conflicts));
  ExpectView(*view, fs(), "after the commit of a part");
  ExpectNoConflict();
  ASSERT_OK(fs().Remount());
  ExpectView(*view, fs(), "opened again");
  ASSERT_OK(fs().Commit());
  ExpectView(*view, fs(), "after the commit of the rest");
  PosixDriver plain(base_.root());
  ExpectView(*view, plain, "the base after the commit of the rest");
  ASSERT_OK(fs().workspace().Close());
  EXPECT_EQ(FindProblems(base_.root()), "");
}

INSTANTIATE_TEST_SUITE_P(All, SamePlaceTest,
                         ::testing::Combine(::testing::ValuesIn(kWays),
                                            ::testing::ValuesIn(kRests),
                                            ::testing::Bool()),
                         [](const auto& test) {
                           return string(std::get<Way>(test.param).name) +
                                  std::get<Rest>(test.param).name +
                                  (std::get<bool>(test.param) ? "Held"
                                                              : "Forgotten");
                         });

/// A file of several names, of which the transaction knows only what somebody
/// looked up since it was opened.
class UnseenNameTest : public ::testing::TestWithParam<string> {
 protected:
  void SetUp() override {
    mkdir(base_.root().c_str(), 0755);
    base_.File("d/a", string(9000, 's'));
    base_.Directory("other/deep");
    base_.HardLink("d/a", "other/deep/b");
    base_.File("d/else", "else");
    auto driver = CoreDriver::Start(base_.root(), {});
    ASSERT_OK(driver);
    driver_ = std::move(*driver);
    ASSERT_OK(fs().PatchFile("d/a", 4090, "patched"));
    ASSERT_OK(fs().Rename("other", "moved", 0));
    ASSERT_OK(fs().WriteFile("d/else", "changed"));
    ASSERT_OK(fs().Remount());
  }
  CoreDriver& fs() { return *driver_; }
  string Patch(Driver& driver, const string& path) {
    return driver.ReadFile(path).value_or("").substr(4090, 7);
  }

  const TempDir scratch_;
  BaseTree base_{scratch_.path() + "/ws"};
  std::unique_ptr<CoreDriver> driver_;
};

TEST_P(UnseenNameTest, ItsChangesAreListed) {
  const auto changes = fs().workspace().Changes(true, {GetParam()});
  ASSERT_OK(changes);
  EXPECT_TRUE(std::ranges::any_of(*changes, [](const NetChange& change) {
    return change.path == "moved/deep/b" && change.content;
  }));
}

TEST_P(UnseenNameTest, ItIsCommitted) {
  ASSERT_OK(fs().workspace().Commit({.paths = {GetParam()}}));
  PosixDriver plain(base_.root());
  EXPECT_EQ(Patch(plain, "d/a"), "patched");
  EXPECT_EQ(base_.Read("d/else"), "else");
}

TEST_P(UnseenNameTest, ItIsDiscarded) {
  ASSERT_OK(fs().workspace().DiscardPart({GetParam()}));
  EXPECT_EQ(Patch(fs(), "d/a"), "sssssss");
  EXPECT_EQ(fs().ReadFile("d/else").value(), "changed");
}

INSTANTIATE_TEST_SUITE_P(Paths, UnseenNameTest,
                         ::testing::Values("moved/deep/b", "moved/deep",
                                           "moved"),
                         [](const auto& test) {
                           string name = test.param;
                           std::erase(name, '/');
                           return name;
                         });

}  // namespace
}  // namespace txfs::testing
