#include <linux/fs.h>
#include <sys/stat.h>

#include <string>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

class RenameTest : public ConformanceTest {};
FOR_EVERY_DRIVER(RenameTest);

TEST_P(RenameTest, MovesAFileOfTheBase) {
  base().File("a/old", "x");
  base().Directory("b");
  ASSERT_OK(fs().Rename("a/old", "b/new", 0));
  EXPECT_ERRNO(fs().Stat("a/old"), ENOENT);
  EXPECT_EQ(Content("b/new"), "x");
  if (fs().has_base()) {
    EXPECT_EQ(base().Read("a/old"), "x");
  }
}

TEST_P(RenameTest, MovesANewFile) {
  ASSERT_OK(fs().WriteFile("old", "x"));
  ASSERT_OK(fs().Rename("old", "new", 0));
  EXPECT_EQ(Names(""), vector<string>{"new"});
  EXPECT_EQ(Content("new"), "x");
}

TEST_P(RenameTest, MovesABaseDirectoryWithAllThatIsBelow) {
  base().File("a/b/c/f", "deep");
  base().File("a/g", "g");
  ASSERT_OK(fs().Rename("a", "z", 0));
  EXPECT_EQ(Content("z/b/c/f"), "deep");
  EXPECT_EQ(Content("z/g"), "g");
  EXPECT_ERRNO(fs().Stat("a"), ENOENT);
  EXPECT_ERRNO(fs().Stat("a/b/c/f"), ENOENT);
}

TEST_P(RenameTest, FilesOfAMovedBaseDirectoryCanBeChangedMovedAndDeleted) {
  base().File("a/b/f", "f");
  base().File("a/b/g", "g");
  base().File("a/h", "h");
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().AppendFile("z/b/f", "!"));
  ASSERT_OK(fs().Rename("z/b/g", "top", 0));
  ASSERT_OK(fs().Unlink("z/h"));
  ASSERT_OK(fs().WriteFile("z/new", "n"));
  EXPECT_EQ(Content("z/b/f"), "f!");
  EXPECT_EQ(Content("top"), "g");
  EXPECT_EQ(Names("z"), (vector<string>{"b", "new"}));
  EXPECT_EQ(Names("z/b"), vector<string>{"f"});
}

TEST_P(RenameTest, MovesADirectoryThatWasChangedInside) {
  base().File("a/keep", "k");
  base().File("a/gone", "g");
  ASSERT_OK(fs().Unlink("a/gone"));
  ASSERT_OK(fs().WriteFile("a/new", "n"));
  ASSERT_OK(fs().Rename("a", "z", 0));
  EXPECT_EQ(Names("z"), (vector<string>{"keep", "new"}));
  EXPECT_ERRNO(fs().Stat("z/gone"), ENOENT);
}

TEST_P(RenameTest, MovesADirectoryAndBack) {
  base().File("a/f", "f");
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().WriteFile("z/new", "n"));
  ASSERT_OK(fs().Rename("z", "a", 0));
  EXPECT_EQ(Names(""), vector<string>{"a"});
  EXPECT_EQ(Names("a"), (vector<string>{"f", "new"}));
}

TEST_P(RenameTest, TheOldNameOfAMovedDirectoryIsFree) {
  base().File("a/f", "old");
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().Mkdir("a", 0755));
  EXPECT_EQ(Names("a"), vector<string>{});
  ASSERT_OK(fs().WriteFile("a/f", "new"));
  EXPECT_EQ(Content("a/f"), "new");
  EXPECT_EQ(Content("z/f"), "old");
}

TEST_P(RenameTest, MovesBaseDirectoriesIntoEachOther) {
  base().File("a/1", "1");
  base().File("b/2", "2");
  base().File("c/3", "3");
  ASSERT_OK(fs().Rename("c", "b/c", 0));
  ASSERT_OK(fs().Rename("b", "a/b", 0));
  ASSERT_OK(fs().Rename("a", "z", 0));
  EXPECT_EQ(Content("z/b/c/3"), "3");
  ASSERT_OK(fs().Rename("z/b/c", "c", 0));
  ASSERT_OK(fs().Rename("z", "c/z", 0));
  EXPECT_EQ(Content("c/z/b/2"), "2");
  EXPECT_EQ(Names(""), vector<string>{"c"});
}

TEST_P(RenameTest, ReplacesAFile) {
  base().File("a", "a");
  base().File("b", "b");
  ASSERT_OK(fs().WriteFile("n", "n"));
  ASSERT_OK(fs().Rename("n", "a", 0));
  EXPECT_EQ(Content("a"), "n");
  ASSERT_OK(fs().Rename("b", "a", 0));
  EXPECT_EQ(Content("a"), "b");
  EXPECT_EQ(Names(""), vector<string>{"a"});
}

TEST_P(RenameTest, ReplacesAnEmptyDirectoryOnly) {
  base().File("full/f", "");
  base().Directory("empty");
  base().File("source/s", "s");
  EXPECT_ERRNO(fs().Rename("source", "full", 0), ENOTEMPTY);
  ASSERT_OK(fs().Rename("source", "empty", 0));
  EXPECT_EQ(Names("empty"), vector<string>{"s"});
  ASSERT_OK(fs().Unlink("full/f"));
  ASSERT_OK(fs().Rename("empty", "full", 0));
  EXPECT_EQ(Names("full"), vector<string>{"s"});
  EXPECT_ERRNO(fs().Stat("full/f"), ENOENT);
}

TEST_P(RenameTest, ANewDirectoryOverAnEmptiedBaseDirectoryHidesItsOldContent) {
  base().File("d/old", "");
  ASSERT_OK(fs().Mkdir("n", 0755));
  ASSERT_OK(fs().WriteFile("n/new", ""));
  ASSERT_OK(fs().Unlink("d/old"));
  ASSERT_OK(fs().Rename("n", "d", 0));
  EXPECT_EQ(Names("d"), vector<string>{"new"});
}

TEST_P(RenameTest, LooksAtTheTypes) {
  base().File("f", "");
  base().Directory("d");
  EXPECT_ERRNO(fs().Rename("f", "d", 0), EISDIR);
  EXPECT_ERRNO(fs().Rename("d", "f", 0), ENOTDIR);
  EXPECT_ERRNO(fs().Rename("absent", "x", 0), ENOENT);
  EXPECT_ERRNO(fs().Rename("f", "absent/x", 0), ENOENT);
}

TEST_P(RenameTest, RefusesToPutADirectoryIntoItself) {
  base().Directory("a/b/c");
  EXPECT_ERRNO(fs().Rename("a", "a/x", 0), EINVAL);
  EXPECT_ERRNO(fs().Rename("a", "a/b/c/x", 0), EINVAL);
  EXPECT_ERRNO(fs().Rename("a/b", "a/b/c", 0), EINVAL);
  EXPECT_ERRNO(fs().Rename("a/b/c", "a", 0), ENOTEMPTY);
  EXPECT_ERRNO(fs().Rename("a", "a/b/c", RENAME_EXCHANGE), EINVAL);
}

TEST_P(RenameTest, ToItselfDoesNothing) {
  base().File("f", "x");
  base().Directory("d");
  EXPECT_OK(fs().Rename("f", "f", 0));
  EXPECT_OK(fs().Rename("d", "d", 0));
  EXPECT_EQ(Content("f"), "x");
}

TEST_P(RenameTest, ToAnotherLinkOfTheSameFileDoesNothing) {
  base().File("f", "x");
  base().HardLink("f", "g");
  EXPECT_OK(fs().Rename("f", "g", 0));
  EXPECT_EQ(Names(""), (vector<string>{"f", "g"}));
  EXPECT_EQ(St("f").st_nlink, 2u);
}

TEST_P(RenameTest, NoReplaceRefusesWhatExists) {
  base().File("f", "f");
  base().File("g", "g");
  EXPECT_ERRNO(fs().Rename("f", "g", RENAME_NOREPLACE), EEXIST);
  EXPECT_EQ(Content("g"), "g");
  ASSERT_OK(fs().Rename("f", "h", RENAME_NOREPLACE));
  EXPECT_EQ(Content("h"), "f");
  ASSERT_OK(fs().Rename("g", "f", RENAME_NOREPLACE));
  EXPECT_EQ(Content("f"), "g");
}

TEST_P(RenameTest, ExchangesTwoFilesOfTheBase) {
  base().File("f", "f");
  base().File("d/g", "g");
  ASSERT_OK(fs().Rename("f", "d/g", RENAME_EXCHANGE));
  EXPECT_EQ(Content("f"), "g");
  EXPECT_EQ(Content("d/g"), "f");
}

TEST_P(RenameTest, ExchangesABaseDirectoryAndANewFile) {
  base().File("d/sub/f", "f");
  base().Directory("e");
  ASSERT_OK(fs().WriteFile("e/new", "n"));
  const auto links = St("e").st_nlink;
  ASSERT_OK(fs().Rename("d", "e/new", RENAME_EXCHANGE));
  EXPECT_EQ(Content("d"), "n");
  EXPECT_EQ(Content("e/new/sub/f"), "f");
  EXPECT_EQ(St("e").st_nlink, links + 1);
}

TEST_P(RenameTest, ExchangesTwoBaseDirectories) {
  base().File("a/1", "1");
  base().File("b/2", "2");
  ASSERT_OK(fs().Rename("a", "b", RENAME_EXCHANGE));
  EXPECT_EQ(Names("a"), vector<string>{"2"});
  EXPECT_EQ(Names("b"), vector<string>{"1"});
  ASSERT_OK(fs().AppendFile("a/2", "!"));
  ASSERT_OK(fs().Rename("a", "b", RENAME_EXCHANGE));
  EXPECT_EQ(Content("b/2"), "2!");
}

TEST_P(RenameTest, ExchangeNeedsBothNames) {
  base().File("f", "");
  EXPECT_ERRNO(fs().Rename("f", "absent", RENAME_EXCHANGE), ENOENT);
  EXPECT_ERRNO(fs().Rename("absent", "f", RENAME_EXCHANGE), ENOENT);
}

TEST_P(RenameTest, SavingLikeAnEditorKeepsOneFile) {
  base().File("f", "old", 0640);
  for (int i = 0; i < 3; ++i) {
    const string content = "version " + std::to_string(i);
    ASSERT_OK(fs().WriteFile("f.tmp", content));
    ASSERT_OK(fs().Chmod("f.tmp", 0640));
    ASSERT_OK(fs().Rename("f.tmp", "f", 0));
    EXPECT_EQ(Content("f"), content);
  }
  EXPECT_EQ(Names(""), vector<string>{"f"});
}

TEST_P(RenameTest, SwapsThroughAThirdName) {
  base().File("a/f", "a");
  base().File("b/f", "b");
  ASSERT_OK(fs().Rename("a", "t", 0));
  ASSERT_OK(fs().Rename("b", "a", 0));
  ASSERT_OK(fs().Rename("t", "b", 0));
  EXPECT_EQ(Content("a/f"), "b");
  EXPECT_EQ(Content("b/f"), "a");
}

TEST_P(RenameTest, MovesASubdirectoryOutOfADeletedTree) {
  base().File("a/b/f", "f");
  base().File("a/g", "g");
  ASSERT_OK(fs().Rename("a/b", "b", 0));
  ASSERT_OK(fs().RemoveRecursively("a"));
  ASSERT_OK(fs().Rename("b", "a", 0));
  EXPECT_EQ(Names("a"), vector<string>{"f"});
}

TEST_P(RenameTest, OpenFilesFollow) {
  base().File("a/f", "f");
  const Handle file = Open("a/f", O_RDWR);
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().WriteAt(file, 1, "!"));
  EXPECT_EQ(Content("z/f"), "f!");
  ASSERT_OK(fs().Rename("z/f", "top", 0));
  ASSERT_OK(fs().WriteAt(file, 2, "!"));
  EXPECT_EQ(Content("top"), "f!!");
  ASSERT_OK(fs().Close(file));
}

}  // namespace
}  // namespace txfs::testing
