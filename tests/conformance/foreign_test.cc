// What belongs to another user, in the workspace of an ordinary one.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/ordinary_user.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// The base without names that are reserved for txfs.
Result<TreeView> Base(PosixDriver& plain) {
  TreeView view = TRY(ViewWithoutStore(plain));
  for (auto& [path, file] : view) {
    if (!S_ISDIR(file.mode) || path.empty()) continue;
    // Some filesystems count the directories in a directory as its links.
    const bool counts = file.nlink > 1;
    const auto entries = plain.List(path);
    if (!counts || !entries) continue;
    file.nlink -= static_cast<uint64_t>(
        std::ranges::count_if(*entries, [](const Entry& entry) {
          return entry.name.starts_with(".txfs-vault");
        }));
  }
  std::erase_if(view, [](const auto& entry) {
    return entry.first.contains(".txfs-vault");
  });
  return view;
}

/// The same without numbers of links, which count those of the vault.
TreeView WithoutLinks(TreeView view) {
  for (auto& [path, file] : view) file.nlink = 0;
  return view;
}

/// A workspace of the ordinary user that root has filled.
class ForeignTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    mkdir((base_.root() + "/.txfs").c_str(), 0700);
    Give("");
    Give(".txfs");
  }

  /// Gives the object to the ordinary user.
  void Give(const string& path) {
    const string at = base_.root() + "/" + path;
    ASSERT_EQ(::chown(at.c_str(), kOrdinaryUser, kOrdinaryUser), 0) << at;
  }

  /// Runs `work` as the ordinary user with a driver over the workspace, then
  /// checks the store.
  void Run(const std::function<Result<string>(CoreDriver&)>& work) {
    EXPECT_EQ(AsOrdinaryUser([&]() -> string {
                const auto driver = CoreDriver::Start(base_.root(), {});
                if (!driver) return driver.error().ToString();
                (*driver)->ActAs(kOrdinaryUser, kOrdinaryUser);
                const auto wrong = work(**driver);
                if (!wrong) return wrong.error().ToString();
                if (!wrong->empty()) return *wrong;
                return FindProblems(base_.root());
              }),
              "");
  }

  static Result<string> CommitAndCompare(CoreDriver& driver,
                                         PosixDriver& plain) {
    const TreeView worked = TRY(ViewWithoutStore(driver));
    TRY(driver.Commit());
    return Compare(worked, TRY(Base(plain)), {.ino = false, .ctime = false});
  }

  TempDir scratch_{MemoryDirectory()};
  BaseTree base_{scratch_.path()};
  PosixDriver plain_{base_.root()};
};

TEST_F(ForeignTest, ADirectoryIsRenamedInItsParent) {
  base_.File("mine/data/in", "kept");
  base_.File("mine/a/first", "1");
  base_.File("mine/b/second", "2");
  base_.SetTimes();
  Give("mine");
  Run([&](CoreDriver& driver) -> Result<string> {
    const TreeView before = TRY(Base(plain_));
    TRY(driver.Rename("mine/data", "mine/data2", 0));
    TRY(driver.Rename("mine/a", "mine/t", 0));
    TRY(driver.Rename("mine/b", "mine/a", 0));
    TRY(driver.Rename("mine/t", "mine/b", 0));
    TRY(driver.Rename("mine", "moved", 0));
    TRY(driver.Mkdir("mine", 0755));
    TRY(driver.WriteFile("mine/new", "new"));
    const string wrong = TRY(CommitAndCompare(driver, plain_));
    if (!wrong.empty()) return wrong;
    const struct stat st = TRY(plain_.Stat("moved/data2"));
    if (st.st_ino != before.at("mine/data").ino) return string("another one");
    TRY(driver.Undo(""));
    return Compare(before, TRY(Base(plain_)), {.ctime = false});
  });
}

TEST_F(ForeignTest, AnEmptyDirectoryIsRemovedAndComesBack) {
  base_.Directory("dir/old");
  base_.Directory("dir/replaced");
  base_.Directory("dir/mine");
  base_.SetTimes();
  Give("dir");
  Give("dir/mine");
  Run([&](CoreDriver& driver) -> Result<string> {
    const TreeView before = TRY(Base(plain_));
    TRY(driver.Rmdir("dir/old"));
    TRY(driver.Rename("dir/mine", "dir/replaced", 0));
    TRY(driver.Rename("dir", "elsewhere", 0));
    string wrong = TRY(CommitAndCompare(driver, plain_));
    if (!wrong.empty()) return wrong;
    const TreeView after = TRY(Base(plain_));
    TRY(driver.Undo(""));
    wrong = Compare(before, TRY(Base(plain_)), {.ctime = false});
    if (!wrong.empty()) return wrong;
    const auto ids = TRY(driver.workspace().store().history().Ids());
    TRY(driver.Undo(ids.back()));
    wrong = Compare(after, TRY(Base(plain_)), {.ctime = false});
    if (!wrong.empty()) return wrong;
    // What undo needs is kept beside, until the commit is freed.
    TRY(driver.workspace().CollectGarbage({.commits = 0}));
    return Compare(after, TRY(ViewWithoutStore(plain_)), {.ctime = false});
  });
}

TEST_F(ForeignTest, ShowKnowsWhatWasRemovedAndRenamed) {
  base_.Directory("old");
  base_.File("data/in", "kept");
  Run([&](CoreDriver& driver) -> Result<string> {
    TRY(driver.Rmdir("old"));
    TRY(driver.Rename("data", "data2", 0));
    TRY(driver.Commit());
    const auto ids = TRY(driver.workspace().store().history().Ids());
    const CommitView view = TRY(driver.workspace().Show(ids.back()));
    string shown;
    for (const NetChange& change : view.changes) {
      shown += change.old_path + ">" + change.path + " ";
    }
    return shown == "data>data2 data/in>data2/in >old " ? string() : shown;
  });
}

TEST_F(ForeignTest, WhatIsKeptBesideStopsTheUndoWhenItIsGone) {
  base_.Directory("old");
  Run([&](CoreDriver& driver) -> Result<string> {
    TRY(driver.Rmdir("old"));
    TRY(driver.Commit());
    for (const Entry& entry : TRY(plain_.List(""))) {
      if (!entry.name.starts_with(".txfs-vault-")) continue;
      TRY(plain_.Rmdir(entry.name));
    }
    const int code = ErrnoOf(driver.Undo(""));
    return code == EEXIST ? string() : "undo: " + ErrnoName(code);
  });
}

TEST_F(ForeignTest, NamesOfAFileWithSeveralGoAndMove) {
  base_.File("one", "shared");
  base_.HardLink("one", "two");
  base_.HardLink("one", "three");
  base_.SetTimes();
  Run([&](CoreDriver& driver) -> Result<string> {
    const TreeView before = TRY(Base(plain_));
    TRY(driver.Unlink("one"));
    TRY(driver.Rename("two", "second", 0));
    const TreeView worked = TRY(ViewWithoutStore(driver));
    TRY(driver.Commit());
    const string wrong =
        Compare(WithoutLinks(worked), WithoutLinks(TRY(Base(plain_))),
                {.ino = false, .ctime = false});
    if (!wrong.empty()) return wrong;
    TRY(driver.Undo(""));
    return Compare(before, TRY(Base(plain_)), {.ctime = false});
  });
}

TEST_F(ForeignTest, AnOwnFileInADirectoryOfAnotherUserIsWritten) {
  base_.File("dir/mine", "old");
  base_.SetTimes();
  Give("dir/mine");
  Run([&](CoreDriver& driver) -> Result<string> {
    const TreeView before = TRY(Base(plain_));
    TRY(driver.WriteFile("dir/mine", "rewritten"));
    const string wrong = TRY(CommitAndCompare(driver, plain_));
    if (!wrong.empty()) return wrong;
    TRY(driver.Undo(""));
    return Compare(before, TRY(Base(plain_)), {.ctime = false});
  });
}

TEST_F(ForeignTest, WhatCannotBeUndoneIsRefusedAtTheOperation) {
  base_.File("write-only", "secret", 0622);
  Run([&](CoreDriver& driver) -> Result<string> {
    const int code = ErrnoOf(driver.Truncate("write-only", 0));
    return code == EACCES ? string() : "truncate: " + ErrnoName(code);
  });
}

TEST_F(ForeignTest, TheStickyBitIsHeededBeforeAnythingIsDone) {
  base_.Directory("tmp", 01777);
  base_.File("tmp/theirs", "kept");
  Run([&](CoreDriver& driver) -> Result<string> {
    TRY(driver.WriteFile("first", "1"));
    // The kernel would refuse it.
    TRY(driver.Unlink("tmp/theirs"));
    const int code = ErrnoOf(driver.Commit());
    if (code != EACCES) return "commit: " + ErrnoName(code);
    const bool untouched = !plain_.Stat("first") && plain_.Stat("tmp/theirs");
    return string(untouched ? "" : "something was committed");
  });
}

TEST_F(ForeignTest, WhatIsInADirectoryThatMayOnlyBeSearchedIsReached) {
  for (const char* dir : {"theirs", "mine"}) {
    base_.File(dir + string("/deep/f"), "base");
    base_.Symlink("deep/f", dir + string("/link"));
    Give(dir + string("/deep"));
    Give(dir + string("/deep/f"));
  }
  Give("mine");
  ASSERT_TRUE(plain_.Chmod("theirs", 0711));
  ASSERT_TRUE(plain_.Chmod("mine", 0311));
  Run([&](CoreDriver& driver) -> Result<string> {
    for (const string dir : {"theirs", "mine"}) {
      if (TRY(driver.ReadFile(dir + "/link")) != "base") return dir;
      TRY(driver.WriteFile(dir + "/deep/f", "changed"));
      TRY(driver.WriteFile(dir + "/deep/new", "new"));
    }
    TRY(driver.WriteFile("mine/made", "made"));
    TRY(driver.MakeSavepoint("here"));
    TRY(driver.Rename("mine/made", "mine/moved", 0));
    const auto changes = TRY(driver.workspace().Changes(true));
    if (changes.size() != 5)
      return "changes: " + std::to_string(changes.size());
    TRY(driver.workspace().ChangesSince("here", "", {}));
    TRY(driver.Remount());
    TRY(driver.Commit());
    for (const string dir : {"theirs", "mine"}) {
      if (TRY(plain_.ReadFile(dir + "/deep/f")) != "changed") return dir;
    }
    if (TRY(plain_.ReadFile("mine/moved")) != "made") return string("moved");
    if ((TRY(plain_.Stat("mine")).st_mode & 07777) != 0311) {
      return string("its mode");
    }
    TRY(driver.Undo(""));
    return string(plain_.Stat("mine/moved") ? "not undone" : "");
  });
}

TEST_F(ForeignTest, WhatMayNotBeReadDoesNotHideTheRest) {
  base_.File("secret", "of root", 0600);
  base_.File("replaced", "of root", 0600);
  base_.Directory("shut/in");
  ASSERT_TRUE(plain_.Chmod("shut", 0700));
  Run([&](CoreDriver& driver) -> Result<string> {
    TRY(driver.MakeSavepoint("start"));
    TRY(driver.Unlink("secret"));
    TRY(driver.Unlink("replaced"));
    // As long as it was, so that only its content could tell.
    TRY(driver.WriteFile("replaced", "of user"));
    TRY(driver.Rename("shut", "shut2", 0));
    TRY(driver.Mkdir("shut", 0755));
    TRY(driver.WriteFile("shut/f", "new"));
    TRY(driver.WriteFile("seen", "seen"));
    const auto paths = [](const std::vector<NetChange>& changes) {
      string text;
      for (const NetChange& change : changes) text += change.path + " ";
      return text;
    };
    const string expected = "replaced secret seen shut shut/f shut2 ";
    string shown = paths(TRY(driver.workspace().Changes(true)));
    if (shown != expected) return "diff: " + shown;
    shown = paths(TRY(driver.workspace().ChangesSince("start", "", {})));
    if (shown != expected) return "since: " + shown;
    TRY(driver.workspace().FindConflicts());
    TRY(driver.Commit());
    const auto ids = TRY(driver.workspace().store().history().Ids());
    shown = paths(TRY(driver.workspace().Show(ids.back())).changes);
    return shown == expected ? string() : "show: " + shown;
  });
}

/// A commit that renames and removes directories of root, and dies on its way.
string CrashEverywhere(const BaseTree& base, PosixDriver& plain) {
  constexpr uint64_t kFewestCrashes = 30;
  WorkspaceOptions options;
  options.path = base.root();
  options.store = options.path + "/.txfs";
  options.filesystem.exe_of = [](uint32_t) { return string("/test"); };
  const auto view = [&] {
    return WithoutLinks(Base(plain).value_or(TreeView()));
  };
  const TreeView before = view();
  const uint64_t seed = FirstSeed();
  Picks picks(seed);
  for (uint64_t point = picks.Next();; point = picks.Next()) {
    const string when = "TXFS_TEST_SEED=" + std::to_string(seed) +
                        ", crash point " + std::to_string(point) + ": ";
    TreeView after;
    {
      const auto driver = CoreDriver::Start(base.root(), {});
      if (!driver) return when + driver.error().ToString();
      for (const auto& done :
           {(*driver)->Rename("d/a", "d/t", 0),
            (*driver)->Rename("d/b", "d/a", 0),
            (*driver)->Rename("d/t", "d/b", 0), (*driver)->Rmdir("d/old"),
            (*driver)->Unlink("d/one"), (*driver)->Rename("d/two", "d/x", 0),
            (*driver)->Rename("d", "e", 0), (*driver)->Mkdir("d", 0755)}) {
        if (!done) return when + done.error().ToString();
      }
      after = WithoutLinks(ViewWithoutStore(**driver).value_or(TreeView()));
    }
    const Ending ending = RunAndCrash(
        options,
        [](Workspace& workspace) -> Status {
          TRY(workspace.Commit({.message = "test"}));
          return {};
        },
        point, false);
    if (ending == Ending::kFailed) return when + "failed";
    auto driver = CoreDriver::Start(base.root(), {});
    if (!driver) return when + driver.error().ToString();
    const bool done = plain.Stat("e").has_value();
    const string wrong =
        Compare(done ? after : before, view(),
                {.ino = false, .ctime = false, .mtime = false});
    if (!wrong.empty()) return when + wrong;
    const Status ended = done ? (*driver)->Undo("") : (*driver)->Discard();
    if (!ended) return when + ended.error().ToString();
    const string back = Compare(before, view(), {.ctime = false});
    if (!back.empty()) return when + "afterwards: " + back;
    driver->reset();
    // A history would add crash points to each round.
    for (const auto& entry :
         std::filesystem::directory_iterator(options.store)) {
      std::filesystem::remove_all(entry);
    }
    if (ending == Ending::kCrashed) continue;
    std::cout << point - 1 << " crash points" << std::endl;
    return point > kFewestCrashes ? "" : when + "it is not crashed";
  }
}

TEST_F(ForeignTest, ACrashIsRecovered) {
  base_.File("d/a/first", "1");
  base_.File("d/b/second", "2");
  base_.Directory("d/old");
  base_.File("d/one", "shared");
  base_.HardLink("d/one", "d/two");
  base_.HardLink("d/one", "d/three");
  base_.SetTimes();
  Give("d");
  EXPECT_EQ(AsOrdinaryUser([&] { return CrashEverywhere(base_, plain_); }), "");
}

}  // namespace
}  // namespace txfs::testing
