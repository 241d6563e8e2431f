#include <linux/fs.h>
#include <sys/stat.h>

#include <string>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

constexpr uint64_t kLargeSize = 2ULL << 30;
/// Nobody reads all of it, bytes.
constexpr uint64_t kHuge = 8ULL << 40;

/// What the store takes for what was done.
class StoreTest : public ConformanceTest {
 protected:
  uint64_t StoreBytes() {
    EXPECT_OK(fs().Settle());
    return fs().StoreBytes().value_or(0);
  }
};
FOR_DRIVERS(StoreTest, Needs::kStore);

TEST_P(StoreTest, GrowsLittleWhenALargeBaseFileIsPatched) {
  base().SparseFile("large", kLargeSize);
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().PatchFile("large", kLargeSize / 2 + 4096, string(4096, 'x')));
  EXPECT_LT(StoreBytes(), before + (64 << 10));
  EXPECT_EQ(fs().ReadRange("large", kLargeSize / 2, 12288).value_or("?"),
            string(4096, '\0') + string(4096, 'x') + string(4096, '\0'));
  EXPECT_EQ(St("large").st_size, static_cast<off_t>(kLargeSize));
}

TEST_P(StoreTest, TakesNoContentForChangesOfAttributesAndNames) {
  base().File("large", string(8 << 20, 'x'));
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().Chmod("large", 0600));
  ASSERT_OK(fs().Rename("large", "moved", 0));
  ASSERT_OK(fs().Link("moved", "linked"));
  EXPECT_LT(StoreBytes(), before + (64 << 10));
}

TEST_P(StoreTest, TakesNoContentForARenamedDirectory) {
  for (int i = 0; i < 500; ++i)
    base().File("d/" + std::to_string(i), string(10000, 'x'));
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().Rename("d", "e", 0));
  EXPECT_LT(StoreBytes(), before + (64 << 10));
  EXPECT_EQ(Names("e").size(), 500u);
}

TEST_P(StoreTest, TruncationOfALargeBaseFileTakesNoContent) {
  base().SparseFile("large", kLargeSize);
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().Truncate("large", kLargeSize - 1000));
  ASSERT_OK(fs().Truncate("large", kLargeSize * 2));
  EXPECT_LT(StoreBytes(), before + (64 << 10));
  EXPECT_EQ(St("large").st_size, static_cast<off_t>(kLargeSize * 2));
}

TEST_P(StoreTest, OpeningItAgainLeavesTheRootsTimesAlone) {
  const Timestamp before = Timestamp::From(St("").st_ctim);
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Timestamp::From(St("").st_ctim), before);
}

TEST_P(StoreTest, GivesBackTheSpaceOfDeletedFiles) {
  const uint64_t before = StoreBytes();
  ASSERT_OK(fs().WriteFile("large", string(16 << 20, 'x')));
  EXPECT_GT(StoreBytes(), before + (15 << 20));
  ASSERT_OK(fs().Unlink("large"));
  ASSERT_OK(fs().Remount());
  EXPECT_LT(StoreBytes(), before + (2 << 20));
}

TEST_P(StoreTest, GivesBackReservedSpaceWithTheTransaction) {
  const uint64_t before = StoreBytes();
  for (const bool commits : {false, true}) {
    SCOPED_TRACE(commits);
    const Handle file = Open("new", O_RDWR | O_CREAT);
    ASSERT_OK(fs().Allocate(file, 0, 0, 16 << 20));
    ASSERT_OK(fs().Close(file));
    EXPECT_GT(StoreBytes(), before + (15 << 20));
    if (commits) {
      Commit();
    } else {
      ASSERT_OK(fs().Discard());
    }
    EXPECT_LT(StoreBytes(), before + (2 << 20));
  }
}

class TransactionTest : public ConformanceTest {};
FOR_DRIVERS(TransactionTest, Needs::kStore);

TEST_P(TransactionTest, DiscardMakesEverythingNeverHaveHappened) {
  base().File("changed", "old");
  base().File("deleted/f", "old");
  base().File("moved/f", "old");
  base().File("linked", "old");
  const auto before = ViewTree(fs());
  ASSERT_OK(before);
  ASSERT_OK(fs().WriteFile("changed", "new"));
  ASSERT_OK(fs().RemoveRecursively("deleted"));
  ASSERT_OK(fs().Rename("moved", "elsewhere", 0));
  ASSERT_OK(fs().Link("linked", "linked2"));
  ASSERT_OK(fs().Chmod("linked", 0600));
  ASSERT_OK(fs().WriteFile("new", "new"));
  ASSERT_OK(fs().Discard());
  const auto after = ViewTree(fs());
  ASSERT_OK(after);
  EXPECT_EQ(Compare(*before, *after, {}), "");
}

TEST_P(TransactionTest, HugeSparseFilesAreCommittedAsWhatTheyHave) {
  base().SparseFile("cut", kHuge);
  base().SparseFile("grown", kLargeSize);
  ASSERT_OK(fs().WriteFile("new", "start"));
  ASSERT_OK(fs().PatchFile("new", kHuge - 3, "end"));
  ASSERT_OK(fs().PatchFile("cut", 4096, "start"));
  ASSERT_OK(fs().Truncate("cut", kHuge / 2 - 1));
  ASSERT_OK(fs().PatchFile("grown", kHuge - 3, "end"));
  Commit();
  for (const char* name : {"new", "cut", "grown"}) {
    struct stat st{};
    ASSERT_EQ(lstat((base().root() + "/" + name).c_str(), &st), 0);
    EXPECT_LT(st.st_blocks, 2000) << name;
    EXPECT_EQ(st.st_size, static_cast<off_t>(St(name).st_size)) << name;
  }
  EXPECT_EQ(fs().ReadRange("new", kHuge - 5, 9).value_or("?"),
            string(2, '\0') + "end");
  EXPECT_EQ(fs().ReadRange("cut", 4090, 13).value_or("?"),
            string(6, '\0') + "start" + string(2, '\0'));
}

TEST_P(TransactionTest, WorkGoesOnAfterDiscard) {
  base().File("f", "base");
  ASSERT_OK(fs().WriteFile("f", "one"));
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(Content("f"), "base");
  ASSERT_OK(fs().WriteFile("f", "two"));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Content("f"), "two");
}

TEST_P(TransactionTest, OpenFilesSurviveDiscard) {
  base().File("f", "base");
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().WriteAt(file, 0, "UPPER"));
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "base");
  ASSERT_OK(fs().WriteAt(file, 4, " again"));
  EXPECT_EQ(Content("f"), "base again");
  ASSERT_OK(fs().Close(file));
}

TEST_P(TransactionTest, OpenFilesSurviveCommit) {
  base().File("f", "base");
  const Handle old_file = Open("f", O_RDWR),
               new_file = Open("n", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(old_file, 4, "+"));
  ASSERT_OK(fs().WriteAt(new_file, 0, "new"));
  Commit();
  EXPECT_EQ(base().Read("f"), "base+");
  EXPECT_EQ(base().Read("n"), "new");
  EXPECT_EQ(fs().ReadAt(old_file, 0, 100).value_or("?"), "base+");
  EXPECT_EQ(fs().ReadAt(new_file, 0, 100).value_or("?"), "new");
  ASSERT_OK(fs().WriteAt(old_file, 5, "+"));
  ASSERT_OK(fs().WriteAt(new_file, 3, "er"));
  EXPECT_EQ(Content("f"), "base++");
  EXPECT_EQ(Content("n"), "newer");
  EXPECT_EQ(base().Read("f"), "base+");
  EXPECT_EQ(base().Read("n"), "new");
  Commit();
  EXPECT_EQ(base().Read("n"), "newer");
  ASSERT_OK(fs().Close(old_file));
  ASSERT_OK(fs().Close(new_file));
}

TEST_P(TransactionTest, UnlinkedOpenFilesSurviveCommitAndDiscard) {
  base().File("f", "base");
  const Handle file = Open("f", O_RDWR), fresh = Open("n", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(fresh, 0, "new"));
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().Unlink("n"));
  Commit();
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "base");
  EXPECT_EQ(fs().ReadAt(fresh, 0, 100).value_or("?"), "new");
  ASSERT_OK(fs().Close(file));
  ASSERT_OK(fs().Close(fresh));
  EXPECT_FALSE(base().Exists("f"));
}

TEST_P(TransactionTest, CommitsTwiceInARow) {
  base().File("d/f", "0");
  for (const string content : {"1", "22", "333"}) {
    ASSERT_OK(fs().WriteFile("d/f", content));
    ASSERT_OK(fs().WriteFile("d/n" + content, content));
    ASSERT_OK(fs().Rename("d", "d" + content, 0));
    Commit();
    EXPECT_EQ(base().Read("d" + content + "/f"), content);
    ASSERT_OK(fs().Rename("d" + content, "d", 0));
  }
  Commit();
  EXPECT_EQ(Names("d"), (vector<string>{"f", "n1", "n22", "n333"}));
}

TEST_P(TransactionTest, CommitRefusesWhatChangedInTheBase) {
  base().File("f", "base");
  base().File("g", "base");
  ASSERT_OK(fs().WriteFile("f", "mine"));
  ASSERT_OK(fs().WriteFile("g", "mine"));
  base().File("f", "somebody else's");
  AcceptBase();
  EXPECT_FALSE(fs().Commit().has_value());
  EXPECT_EQ(base().Read("f"), "somebody else's");
  EXPECT_EQ(base().Read("g"), "base");
  EXPECT_EQ(Content("f"), "mine");
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(Content("g"), "base");
}

TEST_P(TransactionTest, CommitKeepsHardLinksOfTheBaseOneFile) {
  base().File("a", "x");
  base().HardLink("a", "d");
  ASSERT_OK(fs().AppendFile("a", "y"));
  ASSERT_OK(fs().Link("a", "n"));
  Commit();
  struct stat a{}, d{}, n{};
  ASSERT_EQ(lstat((base().root() + "/a").c_str(), &a), 0);
  ASSERT_EQ(lstat((base().root() + "/d").c_str(), &d), 0);
  ASSERT_EQ(lstat((base().root() + "/n").c_str(), &n), 0);
  EXPECT_EQ(a.st_ino, d.st_ino);
  EXPECT_EQ(a.st_ino, n.st_ino);
  EXPECT_EQ(a.st_nlink, 3u);
  EXPECT_EQ(base().Read("d"), "xy");
}

TEST_P(TransactionTest,
       CommitOfADeletedLinkDoesNotLookLikeSomebodyElsesChange) {
  base().File("a", "x");
  base().HardLink("a", "b");
  ASSERT_OK(fs().Unlink("a"));
  Commit();
  EXPECT_EQ(St("b").st_nlink, 1u);
  ASSERT_OK(fs().AppendFile("b", "y"));
  ASSERT_OK(fs().Remount());
  Commit();
  EXPECT_EQ(base().Read("b"), "xy");
}

TEST_P(TransactionTest, HardLinksThatChangedPlacesAreTheRightFilesAfterCommit) {
  base().File("a/a", "first file");
  base().Directory("a/b");
  base().HardLink("a/a", "a/b/b");
  base().File("b/a/a", "1");
  base().HardLink("b/a/a", "c");
  // All of them are known before they change.
  ASSERT_OK(ViewTree(fs()));
  ASSERT_OK(fs().Unlink("a/a"));
  ASSERT_OK(fs().Rename("c", "a/b/b", RENAME_EXCHANGE));
  Commit();
  EXPECT_EQ(Content("c"), "first file");
  EXPECT_EQ(Content("a/b/b"), "1");
  EXPECT_EQ(Content("b/a/a"), "1");
  EXPECT_EQ(St("c").st_nlink, 1u);
}

TEST_P(TransactionTest, DirectoriesListTheInodeNumbersThatCommitMade) {
  base().File("d/f", "old");
  ASSERT_OK(fs().WriteFile("d/f", "new"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().List("d"));
  ASSERT_OK(fs().List("d"));
  Commit();
  const auto entries = fs().List("d");
  ASSERT_OK(entries);
  EXPECT_EQ(entries->at(0).ino, St("d/f").st_ino);
}

TEST_P(TransactionTest, CommitExchangesAndReplacesAcrossTypes) {
  base().File("file", "f");
  base().File("dir/inside", "i");
  base().Symlink("t", "link");
  ASSERT_OK(fs().Rename("file", "dir", RENAME_EXCHANGE));
  ASSERT_OK(fs().Unlink("link"));
  ASSERT_OK(fs().Mkdir("link", 0755));
  ASSERT_OK(fs().Rename("file", "link/dir", 0));
  EXPECT_EQ(Content("dir"), "f");
  EXPECT_EQ(Content("link/dir/inside"), "i");
}

}  // namespace
}  // namespace txfs::testing
