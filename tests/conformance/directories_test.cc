#include <dirent.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

class DirectoriesTest : public ConformanceTest {
 protected:
  /// Reads `path` to its end in pieces of `count` with `between` after each
  /// piece.
  vector<Entry> ReadInPieces(
      const string& path, size_t count,
      const std::function<void(const vector<Entry>&)>& between) {
    const Handle dir = fs().OpenDir(path).value();
    vector<Entry> all;
    uint64_t cookie = 0;
    while (true) {
      const auto some = fs().ReadDir(dir, cookie, count);
      EXPECT_TRUE(some.has_value());
      if (!some || some->empty()) break;
      cookie = some->back().cookie;
      all.insert(all.end(), some->begin(), some->end());
      between(*some);
    }
    EXPECT_OK(fs().CloseDir(dir));
    return all;
  }
  static bool IsDot(const Entry& entry) {
    return entry.name == "." || entry.name == "..";
  }
};
FOR_EVERY_DRIVER(DirectoriesTest);

TEST_P(DirectoriesTest, MergeBaseAndNewEntries) {
  base().File("d/base1", "");
  base().File("d/base2", "");
  base().Directory("d/sub");
  ASSERT_OK(fs().WriteFile("d/new", ""));
  ASSERT_OK(fs().Unlink("d/base1"));
  ASSERT_OK(fs().PatchFile("d/base2", 0, "changed"));
  EXPECT_EQ(Names("d"), (vector<string>{"base2", "new", "sub"}));
}

TEST_P(DirectoriesTest, NewOnesMayDenyTheirOwner) {
  ASSERT_OK(fs().Mkdir("d", 0755));
  ASSERT_OK(fs().Mkdir("d/sub", 0755));
  ASSERT_OK(fs().Chmod("d/sub", 0500));
  ASSERT_OK(fs().Chmod("d", 0500));
  Commit();
  EXPECT_EQ(St("d").st_mode & 07777, 0500u);
  EXPECT_EQ(St("d/sub").st_mode & 07777, 0500u);
}

TEST_P(DirectoriesTest, HaveDotAndDotDotOnce) {
  base().Directory("d");
  for (const string path : {"", "d"}) {
    int dots = 0;
    for (const Entry& entry : ReadInPieces(path, 10, [](const auto&) {})) {
      dots += IsDot(entry);
    }
    EXPECT_EQ(dots, 2) << path;
  }
}

TEST_P(DirectoriesTest, ShowTypesOfEntries) {
  base().File("f", "");
  base().Directory("d");
  base().Symlink("t", "s");
  base().Fifo("p");
  ASSERT_OK(fs().WriteFile("nf", ""));
  ASSERT_OK(fs().Mkdir("nd", 0755));
  ASSERT_OK(fs().Symlink("t", "ns"));
  const auto entries = fs().List("");
  ASSERT_OK(entries);
  string types;
  for (const Entry& entry : *entries) {
    types += entry.type == DT_DIR    ? 'd'
             : entry.type == DT_LNK  ? 's'
             : entry.type == DT_REG  ? 'f'
             : entry.type == DT_FIFO ? 'p'
                                     : '?';
  }
  EXPECT_EQ(types, "dfdfsps");
}

TEST_P(DirectoriesTest, ReadingGoesOnWhereItStopped) {
  for (int i = 0; i < 300; ++i) base().File("d/base" + std::to_string(i), "");
  for (int i = 0; i < 300; ++i)
    ASSERT_OK(fs().WriteFile("d/new" + std::to_string(i), ""));
  std::set<string> seen;
  const auto entries = ReadInPieces("d", 7, [](const auto&) {});
  for (const Entry& entry : entries)
    EXPECT_TRUE(seen.insert(entry.name).second) << entry.name;
  EXPECT_EQ(seen.size(), 602u);
}

TEST_P(DirectoriesTest, SeeksToAnEntryReadAgainWhatFollowsIt) {
  for (int i = 0; i < 50; ++i) base().File("d/" + std::to_string(i), "");
  const auto all = ReadInPieces("d", 1000, [](const auto&) {});
  const Handle dir = fs().OpenDir("d").value();
  for (const size_t at : {40u, 3u, 20u, 0u}) {
    const auto rest = fs().ReadDir(dir, all[at].cookie, 1);
    ASSERT_OK(rest);
    ASSERT_FALSE(rest->empty());
    EXPECT_EQ(rest->front().name, all[at + 1].name);
  }
  ASSERT_OK(fs().CloseDir(dir));
}

TEST_P(DirectoriesTest, UnlinkingWhileReadingLeavesNothing) {
  const int files = std::max(600, Scaled(2000));
  for (int i = 0; i < files; ++i) base().File("d/base" + std::to_string(i), "");
  for (int i = 0; i < files; ++i)
    ASSERT_OK(fs().WriteFile("d/new" + std::to_string(i), ""));
  ASSERT_OK(fs().RemoveRecursively("d"));
  EXPECT_ERRNO(fs().Stat("d"), ENOENT);
}

TEST_P(DirectoriesTest, EntriesThatStayAreSeenOnceWhileOthersComeAndGo) {
  for (int i = 0; i < 400; ++i) base().File("d/stay" + std::to_string(i), "");
  for (int i = 0; i < 400; ++i) base().File("d/go" + std::to_string(i), "");
  std::multiset<string> stayed;
  int next = 0;
  const auto entries = ReadInPieces("d", 16, [&](const vector<Entry>& some) {
    for (const Entry& entry : some) {
      if (entry.name.starts_with("go"))
        EXPECT_OK(fs().Unlink("d/" + entry.name));
    }
    EXPECT_OK(fs().WriteFile("d/came" + std::to_string(next++), ""));
  });
  for (const Entry& entry : entries) {
    if (entry.name.starts_with("stay")) stayed.insert(entry.name);
  }
  EXPECT_EQ(stayed.size(), 400u);
  EXPECT_EQ(std::set<string>(stayed.begin(), stayed.end()).size(), 400u);
}

TEST_P(DirectoriesTest, OpenDirectoriesFollowARename) {
  base().File("d/f", "");
  const Handle dir = fs().OpenDir("d").value();
  ASSERT_OK(fs().Rename("d", "e", 0));
  const auto entries = fs().ReadDir(dir, 0, 100);
  ASSERT_OK(entries);
  EXPECT_EQ(entries->size(), 3u);
  ASSERT_OK(fs().CloseDir(dir));
}

TEST_P(DirectoriesTest, ReadingWhatIsNoDirectoryFails) {
  base().File("f", "");
  EXPECT_ERRNO(fs().OpenDir("f"), ENOTDIR);
  EXPECT_ERRNO(fs().OpenDir("absent"), ENOENT);
}

TEST_P(DirectoriesTest, CanBeDeep) {
  string path = "d";
  base().Directory("d");
  for (int i = 0; i < 100; ++i) {
    path += "/d" + std::to_string(i);
    ASSERT_OK(fs().Mkdir(path, 0755));
  }
  ASSERT_OK(fs().WriteFile(path + "/f", "deep"));
  EXPECT_EQ(Content(path + "/f"), "deep");
}

TEST_P(DirectoriesTest, MergedTreesAreRemovedWhole) {
  for (int i = 0; i < 20; ++i) {
    base().File("t/a" + std::to_string(i) + "/b/f", "");
    base().File("t/a" + std::to_string(i) + "/g", "");
  }
  ASSERT_OK(fs().Rename("t/a3", "t/a4/moved", 0));
  for (int i = 5; i < 10; ++i)
    ASSERT_OK(fs().WriteFile("t/a" + std::to_string(i) + "/n", ""));
  ASSERT_OK(fs().RemoveRecursively("t"));
  EXPECT_EQ(Names(""), vector<string>{});
}

}  // namespace
}  // namespace txfs::testing
