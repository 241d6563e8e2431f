#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/posix_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;

class AttributesTest : public ConformanceTest {
 protected:
  Timestamp Mtime(const string& path) {
    return Timestamp::From(St(path).st_mtim);
  }
  Timestamp Ctime(const string& path) {
    return Timestamp::From(St(path).st_ctim);
  }
  /// Whether `t` is about now rather than the time of the base.
  static bool IsNow(Timestamp t) {
    return t > Timestamp{.sec = kBaseTime.sec + 1, .nsec = 0};
  }
  static FileTimes Both(Timestamp t) {
    return {.atime = t.ToTimespec(), .mtime = t.ToTimespec()};
  }
};
FOR_EVERY_DRIVER(AttributesTest);

TEST_P(AttributesTest, ShowsThoseOfTheBase) {
  base().File("f", "12345", 0754);
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0754u);
  EXPECT_EQ(St("f").st_uid, geteuid());
  EXPECT_EQ(Mtime("f"), kBaseTime);
  EXPECT_EQ(St("f").st_size, 5);
}

TEST_P(AttributesTest, TheBirthOfABaseObjectIsThatOfTheBase) {
  base().File("d/f", "x");
  base().Symlink("f", "d/link");
  PosixDriver plain(base().root());
  fs();
  for (const string path : {"", "d", "d/f", "d/link"}) {
    const auto born = plain.BirthOf(path);
    ASSERT_OK(born);
    if (!*born) GTEST_SKIP() << "no time of birth here";
    EXPECT_EQ(fs().BirthOf(path).value_or(std::nullopt), *born) << path;
  }
  ASSERT_OK(fs().WriteFile("d/f", "changed"));
  ASSERT_OK(fs().Rename("d", "e", 0));
  if (GetParam().plain) return;
  EXPECT_EQ(*fs().BirthOf("e"), *plain.BirthOf("d"));
  EXPECT_EQ(*fs().BirthOf("e/f"), *plain.BirthOf("d/f"));
  Commit();
  // Until then the kernel keeps what it was told.
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(*fs().BirthOf("e/f"), *plain.BirthOf("e/f"));
}

TEST_P(AttributesTest, ANewObjectIsBornWhenItIsMade) {
  ASSERT_OK(fs().WriteFile("new", "x"));
  ASSERT_OK(fs().Mkdir("dir", 0755));
  for (const string path : {"new", "dir"}) {
    const auto born = fs().BirthOf(path);
    ASSERT_OK(born);
    if (!*born) GTEST_SKIP() << "no time of birth here";
    EXPECT_TRUE(IsNow(**born)) << path;
    EXPECT_LE(**born, Ctime(path)) << path;
    ASSERT_OK(fs().Utimens(path, Both(kBaseTime)));
    EXPECT_EQ(*fs().BirthOf(path), *born) << path;
  }
}

TEST_P(AttributesTest, ChmodChangesTheModeAndTheCtimeOnly) {
  base().File("f", "x");
  ASSERT_OK(fs().Chmod("f", 0600));
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0600u);
  EXPECT_EQ(Mtime("f"), kBaseTime);
  EXPECT_TRUE(IsNow(Ctime("f")));
  EXPECT_EQ(Content("f"), "x");
  ASSERT_OK(fs().Chmod("f", 07777));
  EXPECT_EQ(St("f").st_mode, S_IFREG | 07777u);
  ASSERT_OK(fs().Chmod("f", 0));
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0u);
  // Nobody but root could look at the content any more.
  if (geteuid() != 0) ASSERT_OK(fs().Chmod("f", 0400));
}

TEST_P(AttributesTest, ChmodOfDirectoriesIncludingTheRoot) {
  base().Directory("d");
  ASSERT_OK(fs().Chmod("d", 01700));
  EXPECT_EQ(St("d").st_mode, S_IFDIR | 01700u);
  ASSERT_OK(fs().Chmod("", 0700));
  EXPECT_EQ(St("").st_mode, S_IFDIR | 0700u);
}

TEST_P(AttributesTest, ChownChangesOwnerOrGroupOrBoth) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("f", "x");
  base().Symlink("f", "link");
  ASSERT_OK(fs().Chown("f", 1000, static_cast<gid_t>(-1)));
  EXPECT_EQ(St("f").st_uid, 1000u);
  EXPECT_EQ(St("f").st_gid, 0u);
  ASSERT_OK(fs().Chown("f", static_cast<uid_t>(-1), 1001));
  EXPECT_EQ(St("f").st_uid, 1000u);
  EXPECT_EQ(St("f").st_gid, 1001u);
  ASSERT_OK(fs().Chown("link", 7, 8));
  EXPECT_EQ(St("link").st_uid, 7u);
  EXPECT_EQ(St("f").st_uid, 1000u);
}

TEST_P(AttributesTest, ChownClearsSetUserIdOfAFile) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("f", "x", 06755);
  ASSERT_OK(fs().Chown("f", 1000, 1000));
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0755u);
}

TEST_P(AttributesTest, AWriteByAnotherUserClearsSetUserId) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("f", "x", 06777);
  const Handle file = Open("f", O_RDWR);
  fs().ActAs(1000, 1000);
  ASSERT_OK(fs().WriteAt(file, 0, "y"));
  fs().ActAs(0, 0);
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0777u);
  ASSERT_OK(fs().Close(file));
}

TEST_P(AttributesTest, EveryChangeOfContentByAnotherUserClearsSetUserId) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("from", string(8192, 'f'));
  using Change = std::function<Status(Handle)>;
  const std::map<string, Change> changes = {
      {"write",
       [&](Handle file) -> Status {
         TRY(fs().WriteAt(file, 0, "y"));
         return {};
       }},
      {"truncate", [&](Handle file) { return fs().TruncateOf(file, 100); }},
      {"reserve", [&](Handle file) { return fs().Allocate(file, 0, 0, 9000); }},
      {"punch",
       [&](Handle file) {
         return fs().Allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              0, 4096);
       }},
      {"zero",
       [&](Handle file) {
         return fs().Allocate(file, FALLOC_FL_ZERO_RANGE, 0, 4096);
       }},
      {"copy",
       [&](Handle file) -> Status {
         const Handle from = Open("from", O_RDONLY);
         const auto copied = fs().CopyRange(from, 0, file, 0, 4096);
         TRY(fs().Close(from));
         TRY(copied);
         return {};
       }},
  };
  for (const auto& [name, change] : changes) {
    base().File(name, string(8192, 'x'), 06777);
    // Without execute permission for the group, whose member it is not.
    base().File(name + "-group", string(8192, 'x'), 02766);
  }
  for (const auto& [name, change] : changes) {
    for (const string& path : {name, name + "-group"}) {
      const mode_t mode = St(path).st_mode;
      EXPECT_NE(mode & 06000, 0u) << path;
      const Handle file = Open(path, O_RDWR);
      fs().ActAs(1000, 1000);
      const auto changed = change(file);
      fs().ActAs(0, 0);
      if (!changed && changed.error().code == EOPNOTSUPP) continue;
      ASSERT_OK(changed);
      EXPECT_EQ(St(path).st_mode, mode & ~mode_t{06000}) << path;
      ASSERT_OK(fs().Close(file));
    }
  }
}

TEST_P(AttributesTest, AWriteByRootKeepsSetUserId) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("f", "x", 04755);
  ASSERT_OK(fs().PatchFile("f", 0, "y"));
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().Allocate(file, 0, 0, 9000));
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(St("f").st_mode, S_IFREG | 04755u);
  SkipCommit();
}

TEST_P(AttributesTest, NewFilesBelongToTheirMaker) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().Directory("d", 0777);
  fs().ActAs(1000, 1001);
  ASSERT_OK(fs().WriteFile("d/f", "x"));
  ASSERT_OK(fs().Mkdir("d/sub", 0755));
  ASSERT_OK(fs().Symlink("t", "d/link"));
  ASSERT_OK(fs().Mkfifo("d/p", 0644));
  fs().ActAs(0, 0);
  for (const string name : {"d/f", "d/sub", "d/link", "d/p"}) {
    EXPECT_EQ(St(name).st_uid, 1000u) << name;
    EXPECT_EQ(St(name).st_gid, 1001u) << name;
  }
}

TEST_P(AttributesTest, NewFilesInASetGroupIdDirectoryInheritItsGroup) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().Directory("d");
  ASSERT_OK(fs().Chown("d", 0, 1234));
  ASSERT_OK(fs().Chmod("d", 02755));
  ASSERT_OK(fs().WriteFile("d/f", "x"));
  ASSERT_OK(fs().Mkdir("d/sub", 0755));
  ASSERT_OK(fs().Symlink("t", "d/link"));
  EXPECT_EQ(St("d/f").st_gid, 1234u);
  EXPECT_EQ(St("d/f").st_mode, S_IFREG | 0644u);
  EXPECT_EQ(St("d/sub").st_gid, 1234u);
  EXPECT_EQ(St("d/sub").st_mode, S_IFDIR | 02755u);
  EXPECT_EQ(St("d/link").st_gid, 1234u);
  SkipCommit();
}

TEST_P(AttributesTest, TimesAreKeptToTheNanosecond) {
  base().File("f", "x");
  base().Directory("d");
  base().Symlink("f", "link");
  const Timestamp t{.sec = 1'234'567'890, .nsec = 987'654'321};
  for (const string name : {"f", "d", "link"}) {
    ASSERT_OK(fs().Utimens(name, Both(t)));
    EXPECT_EQ(Mtime(name), t) << name;
    EXPECT_EQ(Timestamp::From(St(name).st_atim), t) << name;
  }
}

TEST_P(AttributesTest, TimesBeforeTheEpochAndFarAhead) {
  ASSERT_OK(fs().WriteFile("f", "x"));
  for (const Timestamp t : {Timestamp{.sec = -1, .nsec = 999'999'999},
                            Timestamp{.sec = 0, .nsec = 0},
                            Timestamp{.sec = 4'294'967'296, .nsec = 1}}) {
    ASSERT_OK(fs().Utimens("f", Both(t)));
    EXPECT_EQ(Mtime("f"), t);
  }
}

TEST_P(AttributesTest, OmittedTimesStayAndNowIsNow) {
  base().File("f", "x");
  const Timestamp t{.sec = 1'234'567'890, .nsec = 1};
  ASSERT_OK(fs().Utimens("f", Both(t)));
  FileTimes times;
  times.mtime.tv_nsec = UTIME_NOW;
  ASSERT_OK(fs().Utimens("f", times));
  EXPECT_GT(Mtime("f"), t);
  EXPECT_EQ(Timestamp::From(St("f").st_atim), t);
}

TEST_P(AttributesTest, WritingChangesMtimeAndCtime) {
  base().File("f", "x");
  ASSERT_OK(fs().PatchFile("f", 0, "y"));
  EXPECT_TRUE(IsNow(Mtime("f")));
  EXPECT_TRUE(IsNow(Ctime("f")));
  ASSERT_OK(fs().Utimens("f", Both(kBaseTime)));
  ASSERT_OK(fs().Truncate("f", 0));
  EXPECT_TRUE(IsNow(Mtime("f")));
}

TEST_P(AttributesTest, ChangingADirectoryChangesItsTimes) {
  base().File("create/x", "");
  base().File("unlink/x", "");
  base().File("from/x", "");
  base().Directory("to");
  base().File("link/x", "");
  base().Directory("mkdir");
  base().Directory("rmdir/x");
  base().Directory("symlink");
  base().File("untouched/x", "");
  ASSERT_OK(fs().WriteFile("create/new", ""));
  ASSERT_OK(fs().Unlink("unlink/x"));
  ASSERT_OK(fs().Rename("from/x", "to/x", 0));
  ASSERT_OK(fs().Link("link/x", "link/y"));
  ASSERT_OK(fs().Mkdir("mkdir/x", 0755));
  ASSERT_OK(fs().Rmdir("rmdir/x"));
  ASSERT_OK(fs().Symlink("t", "symlink/x"));
  ASSERT_OK(fs().PatchFile("untouched/x", 0, "y"));
  for (const string name : {"create", "unlink", "from", "to", "link", "mkdir",
                            "rmdir", "symlink"}) {
    EXPECT_TRUE(IsNow(Mtime(name))) << name;
    EXPECT_TRUE(IsNow(Ctime(name))) << name;
  }
  EXPECT_EQ(Mtime("untouched"), kBaseTime);
}

TEST_P(AttributesTest, LinkingAndUnlinkingChangeTheCtimeOfTheFile) {
  base().File("f", "x");
  if (!fs().has_base()) GTEST_SKIP() << "the ctime of a new file is now";
  const Timestamp before = Ctime("f");
  ASSERT_OK(fs().Link("f", "g"));
  const Timestamp linked = Ctime("f");
  EXPECT_GT(linked, before);
  ASSERT_OK(fs().Unlink("g"));
  EXPECT_GE(Ctime("f"), linked);
  EXPECT_EQ(Mtime("f"), kBaseTime);
}

TEST_P(AttributesTest, RenameKeepsTheMtime) {
  base().File("d/f", "x");
  ASSERT_OK(fs().Rename("d/f", "g", 0));
  ASSERT_OK(fs().Rename("d", "e", 0));
  EXPECT_EQ(Mtime("g"), kBaseTime);
}

TEST_P(AttributesTest, InodeNumbersSurviveEverythingThatHappensToAFile) {
  base().File("d/f", "x");
  ASSERT_OK(fs().WriteFile("new", "n"));
  const auto old_file = St("d/f").st_ino, new_file = St("new").st_ino,
             dir = St("d").st_ino;
  EXPECT_NE(old_file, new_file);
  ASSERT_OK(fs().AppendFile("d/f", "y"));
  EXPECT_EQ(St("d/f").st_ino, old_file);
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(fs().Chmod("e", 0700));
  EXPECT_EQ(St("e/f").st_ino, old_file);
  EXPECT_EQ(St("e").st_ino, dir);
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(St("e/f").st_ino, old_file);
  EXPECT_EQ(St("e").st_ino, dir);
  EXPECT_EQ(St("new").st_ino, new_file);
}

TEST_P(AttributesTest, InodeNumbersOfBaseFilesAreTheBases) {
  base().File("d/f", "x");
  struct stat st{};
  ASSERT_EQ(lstat((base().root() + "/d/f").c_str(), &st), 0);
  EXPECT_EQ(St("d/f").st_ino, st.st_ino);
}

TEST_P(AttributesTest, InodeNumbersOfNewFilesDiffer) {
  ASSERT_OK(fs().WriteFile("a", ""));
  ASSERT_OK(fs().WriteFile("b", ""));
  ASSERT_OK(fs().Mkdir("c", 0755));
  EXPECT_NE(St("a").st_ino, St("b").st_ino);
  EXPECT_NE(St("a").st_ino, St("c").st_ino);
}

}  // namespace
}  // namespace txfs::testing
