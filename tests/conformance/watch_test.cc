// The events of paths that change although no process changes them through the
// mount.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/workspace/workspace.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A transaction whose kernel holds on to each inode that it looked up.
class WatchedTransaction {
 public:
  WatchedTransaction(const std::string& workspace, const std::string& name) {
    WorkspaceOptions options;
    options.path = workspace;
    options.store = options.path + "/.txfs";
    options.name = name;
    auto opened = Workspace::Open(options);
    if (!opened) ADD_FAILURE() << opened.error().ToString();
    if (opened) workspace_ = std::move(*opened);
    workspace_->OnPathEvents([this](const std::vector<PathEvent>& events) {
      std::ranges::copy(events, std::back_inserter(events_));
    });
    workspace_->OnStaleCaches([this](const StaleCaches& stale) {
      deleted_ += static_cast<size_t>(std::ranges::count_if(
          stale.watched,
          [](const auto& watched) { return watched.was != kNoIno; }));
    });
  }

  [[nodiscard]] Workspace& workspace() const { return *workspace_; }
  Filesystem& fs() { return workspace_->filesystem(); }

  Ino Find(const std::string& path) {
    Ino at = kRootIno;
    for (size_t start = 0; start < path.size();) {
      const size_t end = std::min(path.find('/', start), path.size());
      const auto node = fs().Lookup(at, path.substr(start, end - start));
      if (!node) return kNoIno;
      at = node->ino;
      start = end + 1;
    }
    return at;
  }
  void Write(const std::string& path) {
    const auto [parent, name] = Split(path);
    Ino ino = Find(path);
    if (ino == kNoIno) {
      const auto node = fs().Create({}, parent, name, 0644);
      ASSERT_TRUE(node) << node.error().ToString();
      ino = node->ino;
    }
    ASSERT_TRUE(fs().Write({}, ino, 0, AsBytes(std::string_view("new")), {}));
  }
  void Remove(const std::string& path) {
    const auto [parent, name] = Split(path);
    Find(path);
    ASSERT_TRUE(fs().Unlink({}, parent, name));
  }
  void RemoveDirectory(const std::string& path) {
    const auto [parent, name] = Split(path);
    Find(path);
    ASSERT_TRUE(fs().RemoveDirectory({}, parent, name));
  }
  void MakeDirectory(const std::string& path) {
    const auto [parent, name] = Split(path);
    ASSERT_TRUE(fs().MakeDirectory({}, parent, name, 0755));
  }
  void Rename(const std::string& from, const std::string& to) {
    const auto [parent, name] = Split(from);
    const auto [new_parent, new_name] = Split(to);
    Find(from);
    Find(to);
    ASSERT_TRUE(fs().Rename({}, parent, name, new_parent, new_name,
                            RenameMode::kReplace));
  }
  /// One of each kind.
  void ChangeAll() {
    Write("changed");
    ASSERT_TRUE(fs().SetAttr({}, Find("mode"), {.mode = 0600}));
    Remove("deleted");
    Write("replaced.tmp");
    Rename("replaced.tmp", "replaced");
    Rename("dir/inner", "dir/moved");
    Remove("gone/file");
    RemoveDirectory("gone");
    MakeDirectory("newdir");
    Write("newdir/file");
    Write("new");
    Remove("type");
    MakeDirectory("type");
    Find("same");
  }

  /// Since the last call, each as "came PATH" with a slash after a directory.
  std::vector<std::string> TakeEvents() {
    std::vector<std::string> lines;
    for (const PathEvent& event : std::exchange(events_, {})) {
      const std::string kind = event.kind == PathEvent::Kind::kCame ? "came "
                               : event.kind == PathEvent::Kind::kWent
                                   ? "went "
                                   : "changed ";
      std::string path = event.directory;
      if (!path.empty() && !event.name.empty()) path += '/';
      path += event.name;
      lines.push_back(kind + path + (event.is_directory ? "/" : ""));
      EXPECT_EQ(event.parent, Find(event.directory)) << path;
    }
    return lines;
  }
  /// Files without a name that the kernel was told of, since the last call.
  size_t TakeDeleted() { return deleted_.exchange(0); }

 private:
  std::pair<Ino, std::string> Split(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return {kRootIno, path};
    return {Find(path.substr(0, slash)), path.substr(slash + 1)};
  }

  std::unique_ptr<Workspace> workspace_;
  std::vector<PathEvent> events_;
  std::atomic<size_t> deleted_ = 0;  ///< a discard has threads for it
};

class WatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"same", "changed", "mode", "deleted", "replaced",
                             "type", "dir/inner", "gone/file"}) {
      base_.File(name, "old");
    }
    base_.SetTimes();
    one_ = std::make_unique<WatchedTransaction>(directory_.path(), "one");
  }

  static auto AllBack() {
    return ElementsAre("changed changed", "came deleted", "came gone/",
                       "changed mode", "went new", "went newdir/",
                       "changed replaced", "went type/", "came type",
                       "came dir/inner", "went dir/moved", "came gone/file");
  }

  TempDir directory_;
  BaseTree base_{directory_.path()};
  std::unique_ptr<WatchedTransaction> one_;
};

TEST_F(WatchTest, ADiscardHasAnEventOfEachPath) {
  one_->ChangeAll();
  ASSERT_TRUE(one_->workspace().Discard());
  EXPECT_THAT(one_->TakeEvents(), AllBack());
  // "new", "newdir/file" and what replaced "replaced": they had one name.
  EXPECT_EQ(one_->TakeDeleted(), 3U);
  ASSERT_TRUE(one_->workspace().Discard());
  EXPECT_THAT(one_->TakeEvents(), IsEmpty());
}

TEST_F(WatchTest, ADiscardOfPathsHasAnEventOfEach) {
  one_->ChangeAll();
  ASSERT_TRUE(one_->workspace().DiscardPart({"new", "changed", "deleted"}));
  EXPECT_THAT(one_->TakeEvents(),
              ElementsAre("changed changed", "came deleted", "went new"));
  EXPECT_EQ(one_->TakeDeleted(), 1U);
}

TEST_F(WatchTest, ARollbackHasAnEventOfEachPath) {
  one_->Write("own");
  one_->Write("deleted");
  ASSERT_TRUE(one_->workspace().MakeSavepoint("before"));
  one_->ChangeAll();
  one_->Remove("own");
  ASSERT_TRUE(one_->workspace().Rollback("before"));
  std::vector<std::string> events = one_->TakeEvents();
  EXPECT_EQ(std::erase(events, "came own"), 1U);
  EXPECT_THAT(events, AllBack());
}

TEST_F(WatchTest, ACommitOfItsOwnHasNone) {
  one_->ChangeAll();
  ASSERT_TRUE(one_->workspace().Commit({}));
  EXPECT_THAT(one_->TakeEvents(), IsEmpty());
}

TEST_F(WatchTest, ACommitOfAnotherAndItsUndoHaveAnEventOfEachPath) {
  WatchedTransaction two(directory_.path(), "two");
  for (const char* name : {"same", "changed", "mode", "deleted", "replaced",
                           "type", "dir/inner", "gone/file"}) {
    ASSERT_NE(two.Find(name), kNoIno);
  }
  one_->ChangeAll();
  ASSERT_TRUE(one_->workspace().Commit({}));
  ASSERT_TRUE(two.workspace().Refresh());
  EXPECT_THAT(two.TakeEvents(),
              ElementsAre("changed changed", "went deleted", "went gone/",
                          "changed mode", "came new", "came newdir/",
                          "changed replaced", "went type", "came type/",
                          "went dir/inner", "came dir/moved"));
  two.Find("new");
  two.Find("newdir/file");
  two.Find("dir/moved");
  two.Find("type");
  ASSERT_TRUE(two.workspace().Undo(""));
  EXPECT_THAT(two.TakeEvents(),
              ElementsAre("changed changed", "came deleted", "came gone/",
                          "changed mode", "went new", "went newdir/",
                          "changed replaced", "went type/", "came type",
                          "came dir/inner", "went dir/moved"));
}

TEST_F(WatchTest, OfManyPathsEachDirectoryHasOne) {
  one_->MakeDirectory("many");
  for (size_t i = 0; i <= kMostPathEvents; ++i) {
    one_->Write("many/" + std::to_string(i));
  }
  one_->Write("dir/new");
  ASSERT_TRUE(one_->workspace().MakeSavepoint("before"));
  for (size_t i = 0; i <= kMostPathEvents; ++i) {
    one_->Remove("many/" + std::to_string(i));
  }
  one_->Write("dir/inner");
  ASSERT_TRUE(one_->workspace().Rollback("before"));
  EXPECT_THAT(one_->TakeEvents(),
              UnorderedElementsAre("changed dir/", "changed many/"));
  // "many" is gone itself.
  ASSERT_TRUE(one_->workspace().Discard());
  EXPECT_THAT(one_->TakeEvents(),
              UnorderedElementsAre("changed /", "changed dir/"));
}

}  // namespace
}  // namespace txfs::testing
