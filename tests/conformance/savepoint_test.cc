#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/mapping.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

constexpr size_t kMiB = 1 << 20;

class SavepointTest : public ConformanceTest {
 protected:
  void Mark(const string& name) { ASSERT_OK(fs().MakeSavepoint(name)); }
  void RollBack(const string& name) { ASSERT_OK(fs().Rollback(name)); }
  string ReadHandle(Handle handle) {
    return fs().ReadAt(handle, 0, kMiB).value_or("?");
  }
  uint64_t StoreBytes() {
    EXPECT_OK(fs().Settle());
    return fs().StoreBytes().value_or(0);
  }
};
FOR_DRIVERS(SavepointTest, Needs::kStore);

TEST_P(SavepointTest, BringsBackWhatWasChangedDeletedAndMoved) {
  base().File("d/changed", "old");
  base().File("d/deleted", "deleted");
  base().File("d/moved", "moved");
  fs();
  Mark("s");
  ASSERT_OK(fs().WriteFile("d/changed", "new and longer"));
  ASSERT_OK(fs().Chmod("d/changed", 0600));
  ASSERT_OK(fs().Unlink("d/deleted"));
  ASSERT_OK(fs().Rename("d/moved", "elsewhere", 0));
  ASSERT_OK(fs().WriteFile("d/made", "made"));
  EXPECT_EQ(Names("d"), (vector<string>{"changed", "made"}));

  RollBack("s");

  EXPECT_EQ(Names("d"), (vector<string>{"changed", "deleted", "moved"}));
  EXPECT_EQ(Content("d/changed"), "old");
  EXPECT_EQ(St("d/changed").st_mode & 07777, 0644u);
  EXPECT_EQ(Content("d/deleted"), "deleted");
  EXPECT_EQ(Content("d/moved"), "moved");
  EXPECT_ERRNO(fs().Stat("elsewhere"), ENOENT);
  EXPECT_ERRNO(fs().Stat("d/made"), ENOENT);
}

/// Put back name by name, each is for a moment in the other.
TEST_P(SavepointTest, DirectoriesThatChangedPlacesGoBackWithWhatWasMadeInThem) {
  ASSERT_OK(fs().Mkdir("a", 0755));
  ASSERT_OK(fs().Mkdir("a/b", 0755));
  Mark("s");
  ASSERT_OK(fs().Rename("a/b", "b", 0));
  ASSERT_OK(fs().Rename("a", "b/a", 0));
  ASSERT_OK(fs().WriteFile("b/a/made", "x"));
  ASSERT_OK(fs().WriteFile("b/z", "x"));
  const Handle open = Open("b/z", O_RDONLY);
  RollBack("s");
  EXPECT_EQ(Names(""), vector<string>{"a"});
  EXPECT_EQ(Names("a"), vector<string>{"b"});
  EXPECT_EQ(Names("a/b"), vector<string>{});
  EXPECT_EQ(ReadHandle(open), "x");
  ASSERT_OK(fs().Close(open));
}

TEST_P(SavepointTest, AFileMadeSinceLivesOnForThoseWhoHaveItOpen) {
  fs();
  Mark("s");
  ASSERT_OK(fs().WriteFile("f", string(100000, 'x')));
  const Handle handle = Open("f", O_RDWR);

  RollBack("s");

  EXPECT_ERRNO(fs().Stat("f"), ENOENT);
  EXPECT_EQ(ReadHandle(handle), string(100000, 'x'));
  EXPECT_EQ(fs().StatOf(handle)->st_nlink, 0u);
  ASSERT_OK(fs().WriteAt(handle, 0, "yy"));
  ASSERT_OK(fs().WriteFile("f", "another"));
  EXPECT_EQ(ReadHandle(handle), "yy" + string(99998, 'x'));
  RollBack("s");
  EXPECT_EQ(ReadHandle(handle), "yy" + string(99998, 'x'));
  ASSERT_OK(fs().Close(handle));
}

TEST_P(SavepointTest, AppendersGoOnAtTheEndThatIsThereNow) {
  const string large(100000, 'L');
  base().File("shrinks", "old");
  base().File("grows", large);
  const Handle shrinks = Open("shrinks", O_RDWR | O_APPEND),
               grows = Open("grows", O_RDWR | O_APPEND);
  const auto append = [&](Handle handle, const string& text) {
    ASSERT_OK(fs().WriteAt(handle, 0, text));
  };
  const auto back = [&](const string& kept) {
    // Nobody asks for attributes in between.
    append(shrinks, "1");
    append(shrinks, string(10000, '2'));
    append(grows, "3");
    EXPECT_EQ(ReadHandle(shrinks), kept + "1" + string(10000, '2'));
    EXPECT_EQ(Content("shrinks"), kept + "1" + string(10000, '2'));
    EXPECT_EQ(Content("grows"), large + "3");
  };
  Mark("s");
  for (int i = 0; i < 2; ++i) {
    append(shrinks, " and more");
    ASSERT_OK(fs().Truncate("grows", 7));
    RollBack("s");
    back("old");
    RollBack("s");
  }
  append(shrinks, string(50000, 'm'));
  ASSERT_OK(fs().Truncate("grows", 7));
  ASSERT_OK(fs().Discard());
  back("old");
  ASSERT_OK(fs().Close(shrinks));
  ASSERT_OK(fs().Close(grows));
}

TEST_P(SavepointTest, ReservedSpaceIsUsedBeforeAndAfterARollback) {
  const string text(100'000, 't');
  const Handle file = Open("f", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(file, 0, "kept"));
  Mark("s");
  const auto fill = [&](Handle into) {
    ASSERT_OK(fs().Allocate(into, 0, 0, kMiB));
    ASSERT_OK(fs().WriteAt(into, kMiB / 2, text));
    ASSERT_OK(fs().WriteAt(into, 5000, text));
    string expected = "kept" + string(kMiB - 4, '\0');
    expected.replace(kMiB / 2, text.size(), text);
    expected.replace(5000, text.size(), text);
    EXPECT_TRUE(ReadHandle(into) == expected);
  };
  fill(file);
  RollBack("s");
  EXPECT_EQ(ReadHandle(file), "kept");
  fill(file);
  // The numbers of segments begin anew.
  ASSERT_OK(fs().Discard());
  const Handle other = Open("other", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(other, 0, "kept"));
  ASSERT_OK(fs().Allocate(other, 0, 0, kMiB));
  fill(file);
  fill(other);
  ASSERT_OK(fs().Unlink("other"));
  fill(other);
  ASSERT_OK(fs().Close(file));
  ASSERT_OK(fs().Close(other));
  EXPECT_LT(StoreBytes(), 8 * kMiB);
}

TEST_P(SavepointTest, AnUnlinkedFileThatIsOpenComesBackAsItself) {
  base().File("base", "base content");
  ASSERT_OK(fs().WriteFile("new", "new content"));
  Mark("s");
  for (const string name : {"base", "new"}) {
    const struct stat before = St(name);
    const Handle handle = Open(name, O_RDWR);
    ASSERT_OK(fs().WriteAt(handle, 0, "BEFORE"));
    ASSERT_OK(fs().Unlink(name));
    ASSERT_OK(fs().WriteAt(handle, 0, "after it was unlinked"));

    RollBack("s");

    EXPECT_EQ(Content(name), name + " content");
    EXPECT_EQ(ReadHandle(handle), name + " content");
    EXPECT_EQ(St(name).st_ino, before.st_ino);
    EXPECT_EQ(fs().StatOf(handle)->st_nlink, 1u);
    ASSERT_OK(fs().WriteAt(handle, 0, "SAME"));
    EXPECT_EQ(Content(name).substr(0, 4), "SAME");
    ASSERT_OK(fs().Close(handle));
    RollBack("s");
  }
}

TEST_P(SavepointTest, AnOrphanOfBeforeStaysOne) {
  ASSERT_OK(fs().WriteFile("f", "orphan"));
  const Handle handle = Open("f", O_RDWR);
  ASSERT_OK(fs().Unlink("f"));
  Mark("s");
  ASSERT_OK(fs().WriteFile("f", "another"));
  RollBack("s");
  EXPECT_ERRNO(fs().Stat("f"), ENOENT);
  EXPECT_EQ(ReadHandle(handle), "orphan");
  ASSERT_OK(fs().Close(handle));
}

TEST_P(SavepointTest, LaterSavepointsGoAndTheSameOneCanBeUsedAgain) {
  ASSERT_OK(fs().WriteFile("f", "0"));
  Mark("one");
  ASSERT_OK(fs().WriteFile("f", "1"));
  Mark("two");
  ASSERT_OK(fs().WriteFile("f", "2"));
  RollBack("one");
  EXPECT_EQ(Content("f"), "0");
  EXPECT_FALSE(fs().Rollback("two").has_value());
  ASSERT_OK(fs().WriteFile("f", "3"));
  ASSERT_OK(fs().Remount());
  RollBack("one");
  EXPECT_EQ(Content("f"), "0");
}

TEST_P(SavepointTest, ANumberOfAFileIsNotReusedWhileASavepointNeedsIt) {
  ASSERT_OK(fs().WriteFile("old", "old"));
  Mark("s");
  ASSERT_OK(fs().Unlink("old"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().WriteFile("young", "young"));
  const Handle handle = Open("young", O_RDONLY);
  RollBack("s");
  EXPECT_EQ(Content("old"), "old");
  EXPECT_EQ(ReadHandle(handle), "young");
  ASSERT_OK(fs().Close(handle));
}

TEST_P(SavepointTest, KeepsContentForASavepointAcrossRemounts) {
  const string content(4 * kMiB, 'c');
  ASSERT_OK(fs().WriteFile("f", content));
  Mark("one");
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().WriteFile("f", ""));
  EXPECT_GE(StoreBytes(), before);
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().WriteFile("f", string(2 * kMiB, 'd')));
  Mark("two");
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().Remount());
  RollBack("two");
  EXPECT_EQ(Content("f"), string(2 * kMiB, 'd'));
  ASSERT_OK(fs().Remount());
  RollBack("one");
  EXPECT_EQ(Content("f"), content);
  EXPECT_LT(StoreBytes(), before + kMiB);
}

TEST_P(SavepointTest, ContentMadeAndDeadSinceTakesNoSpace) {
  ASSERT_OK(fs().WriteFile("f", string(kMiB, 'a')));
  Mark("s");
  const uint64_t before = StoreBytes();
  for (char c = 'a'; c < 'm'; ++c) {
    ASSERT_OK(fs().PatchFile("f", 0, string(kMiB, c)));
    (void)StoreBytes();
  }
  EXPECT_LT(StoreBytes(), before + 3 * kMiB);
  RollBack("s");
  EXPECT_LT(StoreBytes(), before + kMiB / 2);
  EXPECT_EQ(Content("f"), string(kMiB, 'a'));
}

TEST_P(SavepointTest, AFileInASegmentOfItsOwnComesBackWhole) {
  string content(5 * kMiB, 's');
  const Handle handle = Open("f", O_RDWR | O_CREAT);
  for (size_t at = 0; at < content.size(); at += kMiB) {
    ASSERT_OK(fs().WriteAt(handle, at, content.substr(at, kMiB)));
  }
  Mark("s");
  ASSERT_OK(fs().WriteAt(handle, 2 * kMiB + 77, string(kMiB, 'T')));
  ASSERT_OK(fs().TruncateOf(handle, 3 * kMiB));
  ASSERT_OK(fs().WriteAt(handle, 3 * kMiB, string(4 * kMiB, 'U')));
  ASSERT_OK(fs().TruncateOf(handle, 0));
  ASSERT_OK(fs().WriteAt(handle, 0, string(2 * kMiB, 'V')));
  RollBack("s");
  EXPECT_EQ(Content("f"), content);
  ASSERT_OK(fs().WriteAt(handle, 5 * kMiB, "more"));
  ASSERT_OK(fs().Close(handle));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Content("f"), content + "more");
  RollBack("s");
  EXPECT_EQ(Content("f"), content);
}

/// What the kernel remembers.
class SavepointKernelTest : public SavepointTest {
 protected:
  void SetUp() override {
    if (GetParam().plain) GTEST_SKIP() << "has no savepoints";
  }
  UniqueFd OpenFd(const string& path, int flags) {
    UniqueFd fd(open((fs().mountpoint() + "/" + path).c_str(),
                     flags | O_CLOEXEC, 0644));
    EXPECT_TRUE(fd.valid()) << path << ": " << std::strerror(errno);
    return fd;
  }
};
FOR_DRIVERS(SavepointKernelTest, Needs::kKernel);

TEST_P(SavepointKernelTest, MappedPagesAreFresh) {
  base().File("f", string(8192, 'b'));
  fs();
  Mark("s");
  const UniqueFd fd = OpenFd("f", O_RDWR);
  const Mapping map(fd.get(), 8192, MAP_SHARED);
  ASSERT_EQ(map.data()[100], 'b');
  ASSERT_EQ(pwrite(fd.get(), "written", 7, 100), 7);
  ASSERT_EQ(map.data()[100], 'w');
  RollBack("s");
  EXPECT_EQ(map.data()[100], 'b');
  EXPECT_EQ(Content("f"), string(8192, 'b'));
}

TEST_P(SavepointKernelTest, StoresThroughAMappingAreTakenBack) {
  base().File("f", string(8192, 'b'));
  fs();
  const UniqueFd fd = OpenFd("f", O_RDWR);
  const Mapping map(fd.get(), 8192, MAP_SHARED);
  map.data()[10] = '1';
  Mark("one");
  map.data()[10] = '2';
  RollBack("one");
  EXPECT_EQ(map.data()[10], '1');
  ASSERT_TRUE(map.Sync());
  EXPECT_EQ(Content("f").substr(9, 3), "b1b");
  map.data()[10] = '3';
  RollBack("one");
  EXPECT_EQ(map.data()[10], '1');
}

TEST_P(SavepointKernelTest, LargeDirectAppendsGoOnAtTheEndThatIsThereNow) {
  // The kernel sends it in several requests.
  string large(3 * kMiB, '?');
  for (size_t i = 0; i < large.size(); ++i) large[i] = "abcdefg"[i / 4096 % 7];
  base().File("f", "old");
  const UniqueFd direct = OpenFd("f", O_WRONLY | O_APPEND | O_DIRECT);
  ASSERT_EQ(write(direct.get(), "more", 4), 4);
  Mark("s");
  ASSERT_EQ(write(direct.get(), "and more", 8), 8);
  RollBack("s");
  ASSERT_EQ(write(direct.get(), large.data(), large.size()),
            static_cast<ssize_t>(large.size()));
  EXPECT_TRUE(Content("f") == "oldmore" + large);
}

TEST_P(SavepointKernelTest, WorkingDirectoriesFollowBack) {
  base().File("a/b/f", "x");
  fs();
  Mark("s");
  const UniqueFd dir = OpenFd("a/b", O_RDONLY | O_DIRECTORY);
  ASSERT_OK(fs().Rename("a", "z", 0));
  ASSERT_OK(fs().Rename("z/b", "z/c", 0));
  RollBack("s");
  const UniqueFd file(openat(dir.get(), "f", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(file.valid());
  const UniqueFd made(
      openat(dir.get(), "g", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  EXPECT_TRUE(made.valid()) << std::strerror(errno);
  EXPECT_EQ(Names("a/b"), (vector<string>{"f", "g"}));
  const UniqueFd above(openat(dir.get(), "..", O_RDONLY | O_DIRECTORY));
  EXPECT_TRUE(above.valid());
  EXPECT_EQ(unlinkat(above.get(), "b/g", 0), 0);
}

TEST_P(SavepointKernelTest, RemovedDirectoriesThatAreInUseCanBeUsedAgain) {
  base().Directory("base");
  ASSERT_OK(fs().Mkdir("new", 0755));
  Mark("s");
  for (const string name : {"base", "new"}) {
    const UniqueFd dir = OpenFd(name, O_RDONLY | O_DIRECTORY);
    ASSERT_OK(fs().Rmdir(name));
    RollBack("s");
    ASSERT_OK(fs().WriteFile(name + "/f", "x"));
    EXPECT_EQ(Names(name), vector<string>{"f"});
    ASSERT_OK(fs().Unlink(name + "/f"));
  }
}

TEST_P(SavepointKernelTest, AWorkingDirectoryMadeSinceIsADeletedOne) {
  fs();
  Mark("s");
  ASSERT_OK(fs().Mkdir("d", 0755));
  const UniqueFd dir = OpenFd("d", O_RDONLY | O_DIRECTORY);
  RollBack("s");
  EXPECT_LT(openat(dir.get(), "f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644), 0);
  EXPECT_EQ(ErrnoName(errno), "ENOENT");
  struct stat st{};
  EXPECT_EQ(fstat(dir.get(), &st), 0);
  EXPECT_EQ(st.st_nlink, 0u);
  ASSERT_OK(fs().Mkdir("d", 0755));
  EXPECT_EQ(Names("d"), vector<string>{});
}

TEST_P(SavepointKernelTest, NamesAttributesAndListsAreFresh) {
  base().File("d/a", "a");
  fs();
  Mark("s");
  ASSERT_OK(fs().Unlink("d/a"));
  ASSERT_OK(fs().WriteFile("d/b", "b"));
  EXPECT_ERRNO(fs().Stat("d/a"), ENOENT);
  EXPECT_EQ(Names("d"), vector<string>{"b"});
  const auto mtime = St("d").st_mtim;
  RollBack("s");
  EXPECT_EQ(Content("d/a"), "a");
  EXPECT_ERRNO(fs().Stat("d/b"), ENOENT);
  EXPECT_EQ(Names("d"), vector<string>{"a"});
  EXPECT_NE(St("d").st_mtim.tv_sec, mtime.tv_sec);
}

}  // namespace
}  // namespace txfs::testing
