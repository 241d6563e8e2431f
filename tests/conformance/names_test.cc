#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

class NamesTest : public ConformanceTest {};
FOR_EVERY_DRIVER(NamesTest);

TEST_P(NamesTest, TakesNamesOf255BytesAndRefusesLongerOnes) {
  const string longest(255, 'n'), too_long(256, 'n');
  ASSERT_OK(fs().WriteFile(longest, "x"));
  ASSERT_OK(fs().Mkdir("d" + longest.substr(1), 0755));
  EXPECT_EQ(Content(longest), "x");
  EXPECT_ERRNO(fs().WriteFile(too_long, "x"), ENAMETOOLONG);
  EXPECT_ERRNO(fs().Mkdir(too_long, 0755), ENAMETOOLONG);
  EXPECT_ERRNO(fs().Rename(longest, too_long, 0), ENAMETOOLONG);
  EXPECT_ERRNO(fs().Symlink("t", too_long), ENAMETOOLONG);
  EXPECT_ERRNO(fs().Stat(too_long), ENAMETOOLONG);
}

TEST_P(NamesTest, NamesAreBytes) {
  const string names[] = {"new\nline", "\xff\xfe not utf-8",
                          " ",         "-rf",
                          "a\\b",      "\"quoted\"",
                          "tab\t",     "\x01\x02",
                          "Ä",         "A\xcc\x88",
                          "...",       "*",
                          "wh.file",   ".wh.file"};
  for (const string& name : names) base().File("base/" + name, name);
  for (const string& name : names) ASSERT_OK(fs().WriteFile(name, name));
  for (const string& name : names) {
    EXPECT_EQ(Content(name), name);
    EXPECT_EQ(Content("base/" + name), name);
    ASSERT_OK(fs().AppendFile("base/" + name, "!"));
  }
  EXPECT_EQ(Names("").size(), std::size(names) + 1);
}

TEST_P(NamesTest, UnlinkedBaseFilesAreGone) {
  base().File("d/f", "x");
  base().File("d/g", "y");
  ASSERT_OK(fs().Unlink("d/f"));
  EXPECT_ERRNO(fs().Stat("d/f"), ENOENT);
  EXPECT_ERRNO(fs().Unlink("d/f"), ENOENT);
  EXPECT_EQ(Names("d"), vector<string>{"g"});
  if (fs().has_base()) {
    EXPECT_TRUE(base().Exists("d/f"));
  }
}

TEST_P(NamesTest, ADeletedBaseNameCanBeAnythingAgain) {
  base().File("f", "old");
  base().File("d/child", "old");
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().Mkdir("f", 0755));
  ASSERT_OK(fs().WriteFile("f/inside", "new"));
  ASSERT_OK(fs().Unlink("d/child"));
  ASSERT_OK(fs().Rmdir("d"));
  ASSERT_OK(fs().WriteFile("d", "now a file"));
  EXPECT_EQ(Names("f"), vector<string>{"inside"});
  EXPECT_EQ(Content("d"), "now a file");
}

TEST_P(NamesTest, ADirectoryMadeAgainDoesNotShowItsOldChildren) {
  base().File("d/old1", "x");
  base().File("d/sub/old2", "x");
  ASSERT_OK(fs().RemoveRecursively("d"));
  ASSERT_OK(fs().Mkdir("d", 0755));
  EXPECT_EQ(Names("d"), vector<string>{});
  EXPECT_ERRNO(fs().Stat("d/old1"), ENOENT);
  ASSERT_OK(fs().Mkdir("d/sub", 0755));
  EXPECT_EQ(Names("d/sub"), vector<string>{});
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Names("d/sub"), vector<string>{});
}

TEST_P(NamesTest, ADeletedFileMadeAgainHasNothingOfTheOldOne) {
  base().File("f", "old content", 0600);
  const auto old_ino = St("f").st_ino;
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().WriteFile("f", "new"));
  EXPECT_EQ(Content("f"), "new");
  EXPECT_EQ(St("f").st_mode, S_IFREG | 0644u);
  if (fs().has_base()) {
    EXPECT_NE(St("f").st_ino, old_ino);
  }
}

TEST_P(NamesTest, RefusesToMakeWhatExists) {
  base().File("f", "");
  base().Directory("d");
  for (const string name : {"f", "d"}) {
    EXPECT_ERRNO(fs().Mkdir(name, 0755), EEXIST);
    EXPECT_ERRNO(fs().Symlink("t", name), EEXIST);
    EXPECT_ERRNO(fs().Mkfifo(name, 0644), EEXIST);
    EXPECT_ERRNO(fs().Link("f", name), EEXIST);
  }
}

TEST_P(NamesTest, RefusesToWalkThroughFiles) {
  base().File("f", "");
  EXPECT_ERRNO(fs().Stat("f/x"), ENOTDIR);
  EXPECT_ERRNO(fs().WriteFile("f/x", ""), ENOTDIR);
  EXPECT_ERRNO(fs().Mkdir("f/x", 0755), ENOTDIR);
  EXPECT_ERRNO(fs().Rename("f", "f/x", 0), ENOTDIR);
}

TEST_P(NamesTest, RemovesDirectoriesOnlyWhenTheyAreEmpty) {
  base().File("base/f", "");
  ASSERT_OK(fs().Mkdir("new", 0755));
  ASSERT_OK(fs().WriteFile("new/f", ""));
  EXPECT_ERRNO(fs().Rmdir("base"), ENOTEMPTY);
  EXPECT_ERRNO(fs().Rmdir("new"), ENOTEMPTY);
  ASSERT_OK(fs().Unlink("base/f"));
  ASSERT_OK(fs().Unlink("new/f"));
  EXPECT_OK(fs().Rmdir("base"));
  EXPECT_OK(fs().Rmdir("new"));
  EXPECT_EQ(Names(""), vector<string>{});
}

TEST_P(NamesTest, UnlinkAndRmdirLookAtTheType) {
  base().File("f", "");
  base().Directory("d");
  EXPECT_ERRNO(fs().Unlink("d"), EISDIR);
  EXPECT_ERRNO(fs().Rmdir("f"), ENOTDIR);
  EXPECT_ERRNO(fs().Unlink("absent"), ENOENT);
  EXPECT_ERRNO(fs().Rmdir("absent"), ENOENT);
}

TEST_P(NamesTest, SymlinksKeepTheirTargetWhateverItIs) {
  base().Symlink("../outside", "base");
  for (const string target :
       {"x", "/absolute/../path", "with\nnewline", "\xff"}) {
    ASSERT_OK(fs().Symlink(target, "link"));
    EXPECT_EQ(fs().Readlink("link").value_or("?"), target);
    EXPECT_EQ(St("link").st_size, static_cast<off_t>(target.size()));
    ASSERT_OK(fs().Unlink("link"));
  }
  EXPECT_EQ(fs().Readlink("base").value_or("?"), "../outside");
  ASSERT_OK(fs().Rename("base", "renamed", 0));
  EXPECT_EQ(fs().Readlink("renamed").value_or("?"), "../outside");
}

TEST_P(NamesTest, LongSymlinksFit) {
  const string target(4000, 't');
  ASSERT_OK(fs().Symlink(target, "link"));
  EXPECT_EQ(fs().Readlink("link").value_or("?"), target);
}

TEST_P(NamesTest, ReadlinkNeedsASymlink) {
  base().File("f", "");
  EXPECT_ERRNO(fs().Readlink("f"), EINVAL);
  EXPECT_ERRNO(fs().Readlink("absent"), ENOENT);
}

TEST_P(NamesTest, FifosAreFifos) {
  base().Fifo("base");
  ASSERT_OK(fs().Mkfifo("new", 0600));
  EXPECT_EQ(St("new").st_mode, S_IFIFO | 0600u);
  EXPECT_EQ(St("base").st_mode, S_IFIFO | 0644u);
  ASSERT_OK(fs().Rename("base", "moved", 0));
  EXPECT_EQ(St("moved").st_mode, S_IFIFO | 0644u);
  ASSERT_OK(fs().Unlink("new"));
}

TEST_P(NamesTest, TheStoreIsInvisibleAndItsNameCannotBeTaken) {
  base().File("f", "");
  base().Directory("d");
  if (!fs().has_base()) GTEST_SKIP() << "a plain directory has no store";
  EXPECT_EQ(Names(""), (vector<string>{"d", "f"}));
  if (GetParam().name == "Mount") {
    // It tells of itself under that name, so that something is there.
    EXPECT_OK(fs().Stat(".txfs"));
    EXPECT_ERRNO(fs().Mkdir(".txfs", 0755), EEXIST);
    EXPECT_ERRNO(fs().WriteFile(".txfs", "x"), EISDIR);
    EXPECT_ERRNO(fs().Symlink("x", ".txfs"), EEXIST);
    EXPECT_ERRNO(fs().Link("f", ".txfs"), EEXIST);
    EXPECT_ERRNO(fs().Rename("f", ".txfs", 0), EISDIR);
    EXPECT_ERRNO(fs().Rename("d", ".txfs", 0), EROFS);
  } else {
    EXPECT_ERRNO(fs().Stat(".txfs"), ENOENT);
    EXPECT_ERRNO(fs().Mkdir(".txfs", 0755), EPERM);
    EXPECT_ERRNO(fs().WriteFile(".txfs", "x"), EPERM);
    EXPECT_ERRNO(fs().Symlink("x", ".txfs"), EPERM);
    EXPECT_ERRNO(fs().Link("f", ".txfs"), EPERM);
    EXPECT_ERRNO(fs().Rename("f", ".txfs", 0), EPERM);
    EXPECT_ERRNO(fs().Rename("d", ".txfs", RENAME_NOREPLACE), EPERM);
  }
  EXPECT_ERRNO(fs().Stat(".txfs/FORMAT"), ENOENT);
  EXPECT_TRUE(base().Exists(".txfs"));
}

/// A mount of the directory would take them for its own.
TEST_P(NamesTest, NamesOfTxfsAreAsTheBaseHasThemAtAnyDepth) {
  base().File("d/.txfs/f", "x");
  base().Directory("d/.txfs/empty");
  base().Directory("e/f");
  base().Directory("spare");
  base().File("plain", "p");
  base().File(".txfs-vault-0123/of-a-commit", "x");
  base().File("d/.txfs-vault/of-a-commit", "x");
  if (!fs().has_base()) GTEST_SKIP() << "a plain directory has no such names";
  EXPECT_EQ(Content("d/.txfs/f"), "x");
  EXPECT_EQ(Names("d"), (vector<string>{".txfs"}));
  EXPECT_ERRNO(fs().Stat(".txfs-vault-0123"), ENOENT);
  for (const string name :
       {"e/.txfs", "e/f/.txfs", "e/.txfs-vault", "e/.txfs-vault-0123",
        "d/.txfs/g", ".txfs-vaults", ".txfs-vault-4567"}) {
    SCOPED_TRACE(name);
    EXPECT_ERRNO(fs().WriteFile(name, "x"), EPERM);
    EXPECT_ERRNO(fs().Mkdir(name, 0755), EPERM);
    EXPECT_ERRNO(fs().Mkfifo(name, 0600), EPERM);
    EXPECT_ERRNO(fs().Symlink("plain", name), EPERM);
    EXPECT_ERRNO(fs().Link("plain", name), EPERM);
    EXPECT_ERRNO(fs().Rename("plain", name, 0), EPERM);
    EXPECT_ERRNO(fs().Rename("spare", name, RENAME_NOREPLACE), EPERM);
    EXPECT_ERRNO(fs().Stat(name), ENOENT);
  }
  const Handle file = *fs().Open("d/.txfs/f", O_RDWR, 0);
  EXPECT_ERRNO(fs().WriteAt(file, 0, "y"), EPERM);
  EXPECT_ERRNO(fs().TruncateOf(file, 0), EPERM);
  ASSERT_OK(fs().Close(file));
  EXPECT_ERRNO(fs().Truncate("d/.txfs/f", 0), EPERM);
  EXPECT_ERRNO(fs().Chmod("d/.txfs/f", 0600), EPERM);
  EXPECT_ERRNO(fs().Chmod("d/.txfs", 0700), EPERM);
  EXPECT_ERRNO(fs().Unlink("d/.txfs/f"), EPERM);
  EXPECT_ERRNO(fs().Rmdir("d/.txfs/empty"), EPERM);
  EXPECT_ERRNO(fs().Link("d/.txfs/f", "linked"), EPERM);
  EXPECT_ERRNO(fs().Rename("d/.txfs/f", "moved", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("plain", "d/.txfs/f", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("d/.txfs", "moved", 0), EPERM);
  EXPECT_ERRNO(fs().Rename("e/f", "d/.txfs", RENAME_EXCHANGE), EPERM);
  EXPECT_ERRNO(fs().Rename("d/.txfs", "e/f", RENAME_EXCHANGE), EPERM);
  ASSERT_OK(fs().Rename("d", "moved", 0));
  EXPECT_EQ(Content("moved/.txfs/f"), "x");
  EXPECT_ERRNO(fs().Truncate("moved/.txfs/f", 0), EPERM);
  ASSERT_OK(fs().Rename("moved", "d", 0));
}

TEST_P(NamesTest, OtherNamesDecideNothing) {
  base().Directory("d");
  vector<string> names{".TXFS",       ".txfs2",     ".txfs.toml", "txfs",
                       ".txfs-v",     "TXFS~1",     ".txf\u017f", ".txfs ",
                       ".Txfs-Vault", "policy.toml"};
  for (const string& name : names) {
    ASSERT_OK(fs().WriteFile("d/" + name, "x"));
    ASSERT_OK(fs().WriteFile(name, "x"));
  }
  std::ranges::sort(names);
  EXPECT_EQ(Names("d"), names);
}

}  // namespace
}  // namespace txfs::testing
