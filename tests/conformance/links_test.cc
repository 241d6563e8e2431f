#include <sys/stat.h>

#include <string>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;

class LinksTest : public ConformanceTest {};
FOR_EVERY_DRIVER(LinksTest);

TEST_P(LinksTest, ANameThatCameBackIsTheLastOne) {
  base().File("a", "content");
  base().HardLink("a", "b");
  ASSERT_OK(fs().Rename("a", "elsewhere", 0));
  ASSERT_OK(fs().Rename("elsewhere", "a", 0));
  ASSERT_OK(fs().Unlink("b"));
  Commit();
  EXPECT_EQ(St("a").st_nlink, 1u);
}

TEST_P(LinksTest, ANameThatCameBackGetsAnother) {
  base().File("a", "content");
  base().HardLink("a", "b");
  for (const char* name : {"a", "b"}) {
    ASSERT_OK(fs().Rename(name, "elsewhere", 0));
    ASSERT_OK(fs().Rename("elsewhere", name, 0));
  }
  ASSERT_OK(fs().Link("a", "c"));
  Commit();
  EXPECT_EQ(St("a").st_nlink, 3u);
}

TEST_P(LinksTest, AnOpenFileIsThatOfANameThatNobodyLookedUp) {
  base().File("a", "content");
  base().Directory("d");
  base().HardLink("a", "d/unseen");
  const Handle file = Open("a", O_RDWR);
  ASSERT_OK(fs().Unlink("a"));
  Commit();
  EXPECT_EQ(fs().StatOf(file).value().st_nlink, 1u);
  ASSERT_OK(fs().WriteAt(file, 0, "CONTENT"));
  EXPECT_EQ(Content("d/unseen"), "CONTENT");
  Commit();
  EXPECT_EQ(Content("d/unseen"), "CONTENT");
  ASSERT_OK(fs().Close(file));
}

TEST_P(LinksTest, ANewLinkIsTheSameFile) {
  ASSERT_OK(fs().WriteFile("f", "x"));
  ASSERT_OK(fs().Link("f", "g"));
  EXPECT_EQ(St("f").st_ino, St("g").st_ino);
  EXPECT_EQ(St("f").st_nlink, 2u);
  ASSERT_OK(fs().AppendFile("g", "y"));
  EXPECT_EQ(Content("f"), "xy");
}

TEST_P(LinksTest, ALinkToABaseFileIsTheSameFile) {
  base().File("d/f", "x");
  ASSERT_OK(fs().Link("d/f", "g"));
  EXPECT_EQ(St("d/f").st_ino, St("g").st_ino);
  EXPECT_EQ(St("g").st_nlink, 2u);
  ASSERT_OK(fs().AppendFile("d/f", "y"));
  EXPECT_EQ(Content("g"), "xy");
  ASSERT_OK(fs().Unlink("d/f"));
  EXPECT_EQ(St("g").st_nlink, 1u);
  EXPECT_EQ(Content("g"), "xy");
}

TEST_P(LinksTest, HardLinksOfTheBaseStayOneFileWhenOneIsChanged) {
  base().File("a/f", "x");
  base().HardLink("a/f", "b");
  EXPECT_EQ(St("a/f").st_nlink, 2u);
  ASSERT_OK(fs().AppendFile("b", "y"));
  EXPECT_EQ(Content("a/f"), "xy");
  EXPECT_EQ(St("a/f").st_ino, St("b").st_ino);
  ASSERT_OK(fs().Chmod("a/f", 0600));
  EXPECT_EQ(St("b").st_mode, S_IFREG | 0600u);
}

TEST_P(LinksTest, UnlinkingOneNameOfABaseFileCountsDownTheOther) {
  base().File("a", "x");
  base().HardLink("a", "b");
  base().HardLink("a", "c");
  ASSERT_OK(fs().Unlink("a"));
  EXPECT_EQ(St("b").st_nlink, 2u);
  ASSERT_OK(fs().Unlink("c"));
  EXPECT_EQ(St("b").st_nlink, 1u);
  EXPECT_EQ(Content("b"), "x");
}

TEST_P(LinksTest, ALinkIsFoundThroughTheOtherNameAfterRemount) {
  base().File("a/f", "x");
  base().HardLink("a/f", "b");
  ASSERT_OK(fs().AppendFile("b", "y"));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Content("a/f"), "xy");
  EXPECT_EQ(St("a/f").st_ino, St("b").st_ino);
}

TEST_P(LinksTest, LinksOfABaseFileFollowTheRenameOfADirectory) {
  base().File("a/f", "x");
  base().HardLink("a/f", "b");
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().AppendFile("z/f", "y"));
  EXPECT_EQ(Content("b"), "xy");
  ASSERT_OK(fs().Unlink("b"));
  EXPECT_EQ(Content("z/f"), "xy");
  EXPECT_EQ(St("z/f").st_nlink, 1u);
}

TEST_P(LinksTest, ReplacingOneNameLeavesTheOther) {
  base().File("a", "x");
  base().HardLink("a", "b");
  ASSERT_OK(fs().WriteFile("n", "n"));
  ASSERT_OK(fs().Rename("n", "a", 0));
  EXPECT_EQ(Content("b"), "x");
  EXPECT_EQ(St("b").st_nlink, 1u);
  EXPECT_EQ(Content("a"), "n");
}

TEST_P(LinksTest, SymlinksAndFifosHaveLinksToo) {
  base().Symlink("target", "s");
  base().Fifo("p");
  ASSERT_OK(fs().Link("s", "s2"));
  ASSERT_OK(fs().Link("p", "p2"));
  EXPECT_EQ(fs().Readlink("s2").value_or("?"), "target");
  EXPECT_EQ(St("s").st_nlink, 2u);
  EXPECT_EQ(St("p2").st_ino, St("p").st_ino);
}

TEST_P(LinksTest, DirectoriesHaveNoHardLinks) {
  base().Directory("d");
  EXPECT_ERRNO(fs().Link("d", "e"), EPERM);
  EXPECT_ERRNO(fs().Link("absent", "e"), ENOENT);
}

TEST_P(LinksTest, ManyLinksCount) {
  base().File("f", "x");
  for (int i = 0; i < 50; ++i)
    ASSERT_OK(fs().Link("f", "link" + std::to_string(i)));
  EXPECT_EQ(St("f").st_nlink, 51u);
  for (int i = 0; i < 50; i += 2)
    ASSERT_OK(fs().Unlink("link" + std::to_string(i)));
  EXPECT_EQ(St("f").st_nlink, 26u);
}

TEST_P(LinksTest, DirectoriesCountTheirSubdirectories) {
  base().Directory("d/one");
  base().File("d/file", "");
  EXPECT_EQ(St("d").st_nlink, 3u);
  ASSERT_OK(fs().Mkdir("d/two", 0755));
  EXPECT_EQ(St("d").st_nlink, 4u);
  ASSERT_OK(fs().Rename("d/one", "one", 0));
  EXPECT_EQ(St("d").st_nlink, 3u);
  ASSERT_OK(fs().Rename("one", "d/two/one", 0));
  EXPECT_EQ(St("d/two").st_nlink, 3u);
  ASSERT_OK(fs().Rmdir("d/two/one"));
  ASSERT_OK(fs().Rmdir("d/two"));
  EXPECT_EQ(St("d").st_nlink, 2u);
}

TEST_P(LinksTest, ARemovedOpenDirectoryIsEmptyAndTakesNothing) {
  base().Directory("d");
  const auto dir = fs().OpenDir("d");
  ASSERT_OK(dir);
  ASSERT_OK(fs().Rmdir("d"));
  const auto st = fs().StatOf(*dir);
  ASSERT_OK(st);
  EXPECT_EQ(st->st_nlink, 0u);
  ASSERT_OK(fs().CloseDir(*dir));
}

}  // namespace
}  // namespace txfs::testing
