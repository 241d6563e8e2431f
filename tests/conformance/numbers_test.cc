#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// st_ino of files that a program holds.
class NumbersTest : public ConformanceTest {
 protected:
  uint64_t NumberOf(Handle handle) {
    const auto st = fs().StatOf(handle);
    EXPECT_OK(st);
    return st ? st->st_ino : 0;
  }
  /// d_ino of `path`.
  uint64_t Listed(const string& path) {
    const size_t slash = path.rfind('/');
    const string parent = slash == string::npos ? "" : path.substr(0, slash);
    const auto entries = fs().List(parent);
    EXPECT_OK(entries);
    if (!entries) return 0;
    for (const Entry& entry : *entries) {
      if (entry.name == path.substr(slash + 1)) return entry.ino;
    }
    ADD_FAILURE() << path << " is not listed";
    return 0;
  }
  void ExpectNumber(Handle handle, const string& path, uint64_t number) {
    EXPECT_EQ(NumberOf(handle), number) << path;
    EXPECT_EQ(Listed(path), number) << path;
    EXPECT_EQ(St(path).st_ino, number) << path;
  }
  uint64_t NumberInBase(const string& path) {
    struct stat st{};
    EXPECT_EQ(::lstat((base().root() + "/" + path).c_str(), &st), 0) << path;
    return st.st_ino;
  }
};
FOR_DRIVERS(NumbersTest, Needs::kStore);

TEST_P(NumbersTest, AChangedFileKeepsItThroughCommitAndUndo) {
  base().File("d/f", "old");
  const Handle open = Open("d/f", O_RDONLY);
  const uint64_t number = NumberOf(open);
  for (const char* text : {"one", "another"}) {
    ASSERT_OK(fs().WriteFile("d/f", text));
    ExpectNumber(open, "d/f", number);
    Commit();
    EXPECT_NE(NumberInBase("d/f"), number);
    ExpectNumber(open, "d/f", number);
    EXPECT_EQ(Content("d/f"), text);
  }
  for (const char* text : {"one", "old"}) {
    ASSERT_OK(fs().Undo());
    AcceptBase();
    ExpectNumber(open, "d/f", number);
    EXPECT_EQ(Content("d/f"), text);
  }
  ASSERT_OK(fs().Close(open));
}

TEST_P(NumbersTest, NewFilesAndDirectoriesKeepItThroughACommit) {
  base().Directory("d");
  ASSERT_OK(fs().Mkdir("d/new", 0755));
  ASSERT_OK(fs().WriteFile("d/new/f", "new"));
  const Handle file = Open("d/new/f", O_RDWR),
               directory = Open("d/new", O_RDONLY | O_DIRECTORY);
  const uint64_t of_file = NumberOf(file), of_directory = NumberOf(directory);
  const auto expect_both = [&] {
    ExpectNumber(file, "d/new/f", of_file);
    ExpectNumber(directory, "d/new", of_directory);
  };
  Commit();
  expect_both();
  ASSERT_OK(fs().WriteAt(file, 0, "N"));
  expect_both();
  Commit();
  expect_both();
  ASSERT_OK(fs().WriteAt(file, 1, "E"));
  ASSERT_OK(fs().Discard());
  expect_both();
  EXPECT_EQ(Content("d/new/f"), "New");
  ASSERT_OK(fs().Close(file));
  ASSERT_OK(fs().Close(directory));

  // Nobody holds it: it has the number of the base.
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(St("d/new/f").st_ino, NumberInBase("d/new/f"));
  EXPECT_EQ(Listed("d/new"), NumberInBase("d/new"));
}

TEST_P(NumbersTest, AFileKeepsItThroughRollbackAndDiscard) {
  base().File("f", "old");
  const Handle open = Open("f", O_RDWR);
  const uint64_t number = NumberOf(open);
  ASSERT_OK(fs().WriteAt(open, 0, "x"));
  Commit();
  ASSERT_OK(fs().MakeSavepoint("s"));
  ASSERT_OK(fs().Rename("f", "g", 0));
  ASSERT_OK(fs().WriteAt(open, 1, "y"));
  ExpectNumber(open, "g", number);
  ASSERT_OK(fs().Rollback("s"));
  ExpectNumber(open, "f", number);
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().Rollback("s"));
  ExpectNumber(open, "f", number);
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().Discard());
  ExpectNumber(open, "f", number);
  ASSERT_OK(fs().Close(open));
}

TEST_P(NumbersTest, AFileThatAnUndoBringsBackHasTheNumberOfItsDescriptor) {
  base().File("d/f", "old");
  const Handle open = Open("d/f", O_RDONLY);
  const uint64_t number = NumberOf(open);
  ASSERT_OK(fs().Unlink("d/f"));
  Commit();
  ASSERT_OK(fs().Undo());
  AcceptBase();
  ExpectNumber(open, "d/f", number);
  EXPECT_EQ(fs().ReadAt(open, 0, 9).value_or("?"), "old");
  ASSERT_OK(fs().Close(open));
}

/// A deleted file is held, and the base has given its number to another file.
/// (The daemon keeps no empty file open.)
TEST_P(NumbersTest, NoOtherFileHasTheNumberOfAHeldOne) {
  const TempDir outside;
  const string kept = outside.path() + "/kept";
  base().File("d/f", "");
  base().File("d/g", "other");
  ASSERT_EQ(::link((base().root() + "/d/f").c_str(), kept.c_str()), 0);
  const Handle open = Open("d/f", O_RDONLY);
  const uint64_t number = NumberOf(open);
  ASSERT_OK(fs().Unlink("d/f"));
  Commit();
  EXPECT_EQ(NumberOf(open), number);
  for (const char* name : {"/d/one", "/d/two"}) {
    ASSERT_EQ(::link(kept.c_str(), (base().root() + name).c_str()), 0);
  }
  ASSERT_EQ(::unlink(kept.c_str()), 0);
  ASSERT_OK(fs().Chmod("d/g", 0600));  // the directory is looked at again
  ASSERT_OK(fs().WriteFile("d/h", "new"));
  AcceptBase();

  const uint64_t one = Listed("d/one"), two = Listed("d/two");
  EXPECT_NE(one, number);
  EXPECT_EQ(one, two);
  EXPECT_EQ(St("d/one").st_ino, one);
  EXPECT_EQ(Listed("d/one"), one);
  EXPECT_EQ(Listed("d/two"), one);
  EXPECT_EQ(St("d/two").st_ino, one);
  EXPECT_EQ(NumberOf(open), number);
  const std::set<uint64_t> all{number, one, St("d/g").st_ino, St("d/h").st_ino};
  EXPECT_EQ(all.size(), 4U);
  ASSERT_OK(fs().Close(open));
}

/// As above, and the held file goes between a list of the directory, which the
/// kernel keeps, and the first lookup of the other one.
TEST_P(NumbersTest, AListStaysTrueWhenACommittedFileIsForgotten) {
  base().File("d/old", "old");
  ASSERT_OK(fs().WriteFile("d/new", "new"));
  ASSERT_OK(fs().WriteFile("d/old", "changed"));
  const Handle made = Open("d/new", O_RDONLY);
  const Handle changed = Open("d/old", O_RDONLY);
  Commit();
  const uint64_t of_made = Listed("d/new"), of_changed = Listed("d/old");
  EXPECT_NE(NumberInBase("d/new"), of_made);
  EXPECT_NE(NumberInBase("d/old"), of_changed);
  ASSERT_OK(fs().Close(made));
  ASSERT_OK(fs().Close(changed));
  EXPECT_EQ(St("d/new").st_ino, of_made);
  EXPECT_EQ(St("d/old").st_ino, of_changed);
  EXPECT_EQ(Listed("d/new"), of_made);
  EXPECT_EQ(Listed("d/old"), of_changed);
}

TEST_P(NumbersTest, AListStaysTrueWhenANumberIsFreeAgain) {
  const TempDir outside;
  const string kept = outside.path() + "/kept";
  base().File("d/f", "");
  ASSERT_EQ(::link((base().root() + "/d/f").c_str(), kept.c_str()), 0);
  const Handle open = Open("d/f", O_RDONLY);
  ASSERT_OK(fs().Unlink("d/f"));
  Commit();
  ASSERT_EQ(::rename(kept.c_str(), (base().root() + "/d/one").c_str()), 0);
  ASSERT_OK(fs().WriteFile("d/h", "new"));  // the directory is looked at again
  AcceptBase();
  const uint64_t number = Listed("d/one");
  ASSERT_OK(fs().Close(open));
  EXPECT_EQ(St("d/one").st_ino, number);
  EXPECT_EQ(Listed("d/one"), number);
}

}  // namespace
}  // namespace txfs::testing
