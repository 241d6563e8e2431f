#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "fs/base/base_directory.h"
#include "fs/origin/preimages.h"
#include "fs/workspace/workspace.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "journal/support/mutex.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// A transaction of a workspace that has another one, as a program sees it that
/// holds on to every inode it ever looked up, as the kernel does.
class Transaction {
 public:
  Transaction(const string& workspace, const string& name) {
    WorkspaceOptions options;
    options.path = workspace;
    options.store = options.path + "/.txfs";
    options.name = name;
    options.filesystem.exe_of = [](uint32_t) { return string("/test"); };
    auto opened = Workspace::Open(options);
    if (!opened) ADD_FAILURE() << opened.error().ToString();
    if (opened) workspace_ = std::move(*opened);
    workspace_->OnStaleCaches([this](const StaleCaches& stale) {
      const MutexLock lock(mutex_);
      told_.push_back(stale);
    });
  }

  [[nodiscard]] Workspace& workspace() const { return *workspace_; }
  Filesystem& fs() { return workspace_->filesystem(); }

  Ino Find(const string& path) {
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
  string Read(Ino ino) {
    string text(100, '\0');
    const auto size =
        fs().Read(ino, 0, std::as_writable_bytes(std::span(text)));
    if (!size) return "error " + std::to_string(size.error().code);
    text.resize(*size);
    return text;
  }
  string Read(const string& path) {
    const Ino ino = Find(path);
    return ino == kNoIno ? "none" : Read(ino);
  }
  void Write(const string& path, const string& text) {
    const size_t slash = path.rfind('/');
    const Ino parent =
        slash == string::npos ? kRootIno : Find(path.substr(0, slash));
    const string name = path.substr(slash + 1);
    Ino ino = Find(path);
    if (ino == kNoIno) {
      const auto node = fs().Create({}, parent, name, 0644);
      ASSERT_TRUE(node) << node.error().ToString();
      ino = node->ino;
    }
    ASSERT_TRUE(fs().SetAttr({}, ino, {.size = 0}));
    ASSERT_TRUE(fs().Write({}, ino, 0, AsBytes(text), {}));
  }
  std::vector<string> Names(Ino directory) {
    std::vector<string> names;
    EXPECT_TRUE(fs().ReadDirectory(directory, 2, [&](const DirEntry& entry) {
      names.push_back(entry.name);
      return true;
    }));
    std::ranges::sort(names);
    return names;
  }
  StaleCaches Refresh() {
    EXPECT_TRUE(workspace_->Refresh());
    return TakeStale();
  }
  StaleCaches Discard() {
    EXPECT_TRUE(workspace_->Discard());
    return TakeStale();
  }
  size_t Commit(OnConflict on_conflict = OnConflict::kFail) {
    const auto report =
        workspace_->Commit({.conflicts = {.on_conflict = on_conflict}});
    EXPECT_TRUE(report) << report.error().ToString();
    return report ? report->conflicts.size() : 0;
  }
  StaleCaches TakeStale() {
    StaleCaches all;
    for (StaleCaches& stale : TakeTold()) all.Append(std::move(stale));
    return all;
  }
  /// The same, each time that the kernel was told of something.
  std::vector<StaleCaches> TakeTold() {
    const MutexLock lock(mutex_);
    return std::exchange(told_, {});
  }
  /// Each as "KIND PATH".
  std::vector<string> Changes() {
    return LinesOf(workspace_->Changes(false, {}));
  }
  std::vector<string> ChangesSince(const string& savepoint) {
    return LinesOf(workspace_->ChangesSince(savepoint, "", {}));
  }

 private:
  static std::vector<string> LinesOf(
      const Result<std::vector<NetChange>>& changes) {
    std::vector<string> lines;
    EXPECT_TRUE(changes) << changes.error().ToString();
    if (!changes) return lines;
    for (const NetChange& change : *changes) {
      const char letter = "ADMRT"[static_cast<size_t>(change.kind)];
      lines.push_back(string(1, letter) + " " + change.path);
    }
    return lines;
  }

  std::unique_ptr<Workspace> workspace_;
  Mutex mutex_;
  std::vector<StaleCaches> told_ GUARDED_BY(mutex_);
};

bool HasInode(const StaleCaches& stale, Ino ino) {
  return std::ranges::find(stale.inodes, ino) != stale.inodes.end();
}

bool HasName(const StaleCaches& stale, Ino parent, const string& name) {
  return std::ranges::any_of(stale.names, [&](const StaleCaches::Name& entry) {
    return entry.parent == parent && entry.name == name;
  });
}

class RefreshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_.File("file", "old");
    base_.File("same", "same");
    base_.File("removed", "gone");
    base_.File("dir/sub/deep", "deep");
    base_.HardLink("file", "link");
    base_.SetTimes();
    one_ = std::make_unique<Transaction>(directory_.path(), "one");
    two_ = std::make_unique<Transaction>(directory_.path(), "two");
  }

  /// The second one goes on in another process.
  void Reopen() {
    two_.reset();
    two_ = std::make_unique<Transaction>(directory_.path(), "two");
  }

  uint64_t NumberInBase(const string& path) {
    struct stat st{};
    EXPECT_EQ(::lstat((directory_.path() + "/" + path).c_str(), &st), 0);
    return st.st_ino;
  }

  TempDir directory_;
  BaseTree base_{directory_.path()};
  std::unique_ptr<Transaction> one_, two_;
};

TEST_F(RefreshTest, FindsNothingWhereNothingChanged) {
  two_->Find("dir/sub/deep");
  two_->Find("link");
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(stale.inodes.empty());
  EXPECT_TRUE(stale.names.empty());
}

TEST_F(RefreshTest, ShowsARewrittenFileUnderTheInodeThatIsHeld) {
  const Ino file = two_->Find("same");
  EXPECT_EQ(two_->Read(file), "same");
  one_->Write("same", "other");
  EXPECT_EQ(one_->Commit(), 0U);
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(HasInode(stale, file));
  EXPECT_EQ(two_->Read(file), "other");
  EXPECT_EQ(two_->fs().GetAttr(file)->st_size, 5);
  EXPECT_EQ(two_->Find("same"), file);
}

/// What the transaction shows is the same after its daemon was started again.
TEST_F(RefreshTest, AResumedTransactionShowsItsChangesWhereTheBaseChanged) {
  two_->Write("same", "mine");
  two_->Write("file", "mine, too");
  two_->Write("dir/sub/deep", "deeper");
  two_->Write("dir/sub/new", "new");
  for (const string name : {"same", "file"}) {
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, name));
    one_->Write(name, "theirs");
  }
  const Ino dir = one_->Find("dir");
  const Ino sub = one_->Find("dir/sub");
  one_->Find("dir/sub/deep");
  ASSERT_TRUE(one_->fs().Unlink({}, sub, "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, dir, "sub"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, kRootIno, "dir"));
  one_->Write("dir", "a file");
  EXPECT_EQ(one_->Commit(), 0U);
  const auto look = [&] {
    EXPECT_EQ(two_->Read("same"), "mine");
    EXPECT_EQ(two_->Read("file"), "mine, too");
    EXPECT_EQ(two_->Read("dir/sub/deep"), "deeper");
    EXPECT_EQ(two_->Read("dir/sub/new"), "new");
    const auto xattrs = two_->fs().ListXattrs(two_->Find("dir/sub/deep"));
    EXPECT_TRUE(xattrs && xattrs->empty());
    EXPECT_EQ(two_->Names(two_->Find("dir")), std::vector<string>{"sub"});
    EXPECT_EQ(two_->Names(two_->Find("dir/sub")),
              (std::vector<string>{"deep", "new"}));
  };
  two_->Refresh();
  look();
  Reopen();
  look();

  // Nor does another write make a second version of it.
  two_->Write("same", "mine again");
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(two_->Read("same"), "mine again");
  EXPECT_EQ(base_.Read("file"), "mine, too");
  EXPECT_EQ(two_->Read("dir/sub/deep"), "deeper");
  EXPECT_EQ(base_.Read("same"), "mine again");
  EXPECT_EQ(base_.Read("dir/sub/new"), "new");
}

TEST_F(RefreshTest, AFileThatComesBackIsNotTheOneThatWasDeleted) {
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  two_->Write("same", "of its own");
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(one_->workspace().Undo(""));
  two_->Refresh();
  const Ino back = two_->Find("same");
  ASSERT_NE(back, kNoIno);
  EXPECT_EQ(two_->Read(back), "same");
  EXPECT_EQ(two_->fs().GetAttr(back)->st_nlink, 1U);
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "same", kRootIno, "moved",
                                RenameMode::kReplace));
  // Nothing tells that it is what it was.
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("moved"), "same");
  EXPECT_FALSE(base_.Exists("same"));
  EXPECT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(base_.Read("same"), "same");
  EXPECT_FALSE(base_.Exists("moved"));
}

/// It may be open, and nobody looked its other name up.
TEST_F(RefreshTest, AFileThatIsHeldStaysThatOfANameThatNobodyLookedUp) {
  const Ino held = two_->Find("file");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "file"));
  EXPECT_EQ(one_->Commit(), 0U);
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(HasName(stale, kRootIno, "file"));
  EXPECT_TRUE(HasName(stale, kRootIno, "link"));
  EXPECT_TRUE(HasInode(stale, held));
  EXPECT_EQ(two_->Find("file"), kNoIno);
  EXPECT_EQ(two_->fs().GetAttr(held)->st_nlink, 1U);
  ASSERT_TRUE(two_->fs().Write({}, held, 0, AsBytes(string("new")), {}));
  EXPECT_EQ(two_->Find("link"), held);
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(base_.Read("link"), "new");
}

/// Else it would be in no diff and in no conflict.
TEST_F(RefreshTest, WhatOthersTookAwayTakesNoMoreChanges) {
  const Ino moved = two_->Find("same");
  const Ino below = two_->Find("dir/sub/deep");
  const Ino removed = two_->Find("removed");
  ASSERT_EQ(two_->Read(moved), "same");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "elsewhere",
                                RenameMode::kReplace));
  ASSERT_TRUE(one_->fs().Rename({}, one_->Find("dir"), "sub", kRootIno, "sub",
                                RenameMode::kReplace));
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "removed"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  for (const Ino ino : {moved, below, removed}) {
    const auto written = two_->fs().Write({}, ino, 0, AsBytes(string("x")), {});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ESTALE);
    const auto set = two_->fs().SetAttr({}, ino, {.mode = 0600});
    ASSERT_FALSE(set);
    EXPECT_EQ(set.error().code, ESTALE);
  }
  EXPECT_EQ(two_->Read(moved), "same");
  EXPECT_TRUE(two_->Changes().empty());
  two_->Write("elsewhere", "written");
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(base_.Read("elsewhere"), "written");
}

TEST_F(RefreshTest, NorDoesWhatOthersHaveWhenOursIsDropped) {
  for (const bool commits : {true, false}) {
    const string name = commits ? "same" : "removed";
    const Ino held = two_->Find(name);
    ASSERT_TRUE(two_->fs().Write({}, held, 0, AsBytes(string("x")), {}));
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, name));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
    ASSERT_TRUE(two_->fs().Write({}, held, 0, AsBytes(string("y")), {}));
    if (commits) {
      EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
    } else {
      ASSERT_TRUE(two_->workspace().DiscardPart({name}));
    }
    const auto written =
        two_->fs().Write({}, held, 0, AsBytes(string("z")), {});
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().code, ESTALE);
    EXPECT_TRUE(two_->Changes().empty());
  }
}

/// Nobody wants what was made and thrown away while it was open.
TEST_F(RefreshTest, WhatTheTransactionMadeCanBeWrittenWhenItIsDiscarded) {
  two_->Write("made", "made");
  const Ino made = two_->Find("made");
  two_->Discard();
  ASSERT_TRUE(two_->fs().Write({}, made, 0, AsBytes(string("x")), {}));
}

/// As on any filesystem: what the transaction removed itself is still
/// somebody's.
TEST_F(RefreshTest, WhatTheTransactionRemovedCanBeWrittenWhileItIsHeld) {
  const Ino removed = two_->Find("same");
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(two_->fs().Write({}, removed, 0, AsBytes(string("x")), {}));
  EXPECT_EQ(two_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->fs().Write({}, removed, 1, AsBytes(string("y")), {}));
  EXPECT_EQ(two_->Read(removed), "xyme");
}

/// The name of which a search comes to know first need not be one at which the
/// transaction can show it.
TEST_F(RefreshTest, AFileThatIsHeldIsLookedForByAllItsNames) {
  std::filesystem::create_directories(base_.root() + "/shown");
  std::filesystem::create_directories(base_.root() + "/other");
  for (const string name : {"shown/there", "other/x", "other/y"}) {
    base_.HardLink("file", name);
  }
  two_->Refresh();
  const Ino held = two_->Find("file");
  const Ino dir = two_->Find("dir"), sub = two_->Find("dir/sub");
  ASSERT_TRUE(two_->fs().Unlink({}, sub, "deep"));
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, dir, "sub"));
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, kRootIno, "dir"));
  for (const string name : {"link", "file"}) {
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, name));
  }
  ASSERT_TRUE(two_->fs().Write({}, held, 0, AsBytes(string("new")), {}));
  // Of what comes to be in directories that it removed it hides no name.
  for (const string name : {"/x", "/y"}) {
    std::filesystem::rename(base_.root() + "/other" + name,
                            base_.root() + "/dir" + name);
  }
  EXPECT_NE(two_->Commit(), 0U);
  EXPECT_EQ(two_->Find("shown/there"), held);
  EXPECT_EQ(two_->Read("shown/there"), "new");
}

/// Each moves one directory into the other: what the first changed and the
/// second moved is in both places, and must not look like one directory.
TEST_F(RefreshTest, ADirectoryIsNotInItself) {
  base_.File("a/f", "f");
  base_.File("b/g", "g");
  const Ino b = two_->Find("b");
  const auto number = two_->fs().GetAttr(b)->st_ino;
  ASSERT_TRUE(
      two_->fs().Rename({}, kRootIno, "a", b, "a", RenameMode::kReplace));
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "b", one_->Find("a"), "b",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_TRUE(HasInode(two_->Refresh(), b));
  EXPECT_EQ(two_->Find("b"), b);
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    const Ino outer = two_->Find("b"), inner = two_->Find("b/a/b");
    ASSERT_NE(inner, kNoIno);
    EXPECT_EQ(two_->fs().GetAttr(outer)->st_ino, number);
    EXPECT_NE(two_->fs().GetAttr(inner)->st_ino, number);
  }
  EXPECT_NE(two_->Commit(), 0U);

  const Ino outer = two_->Find("b");
  ASSERT_TRUE(one_->workspace().Undo(""));
  EXPECT_TRUE(HasInode(two_->Refresh(), outer));
  EXPECT_EQ(two_->fs().GetAttr(outer)->st_ino, number);
}

TEST_F(RefreshTest, APartOfADirectoryThatIsGoneIsAConflict) {
  two_->Write("dir/sub/deep", "deeper");
  two_->Write("dir/sub/new", "new");
  const Ino dir = one_->Find("dir");
  const Ino sub = one_->Find("dir/sub");
  ASSERT_TRUE(one_->fs().Unlink({}, sub, "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, dir, "sub"));
  EXPECT_EQ(one_->Commit(), 0U);
  const auto report = two_->workspace().Commit({.paths = {"dir/sub/new"}});
  ASSERT_TRUE(report) << report.error().ToString();
  ASSERT_EQ(report->conflicts.size(), 1U);
  EXPECT_EQ(report->conflicts.front().path, "dir/sub");
}

TEST_F(RefreshTest, ADiscardNamesTheDirectoriesOfLookupsThatMayBeInFlight) {
  const Ino dir = one_->Find("dir"), sub = one_->Find("dir/sub"),
            deep = one_->Find("dir/sub/deep");
  one_->Write("dir/sub/deep", "deeper");
  const StaleCaches stale = one_->Discard();
  EXPECT_TRUE(HasInode(stale, deep));
  EXPECT_TRUE(HasName(stale, sub, ""));
  EXPECT_FALSE(HasName(stale, dir, ""));
  EXPECT_EQ(one_->Read(deep), "deep");
}

TEST_F(RefreshTest, ADiscardTellsLastWhatTheKernelWillAskFor) {
  const Ino same = one_->Find("same"), deep = one_->Find("dir/sub/deep");
  one_->Write("same", "looked at");
  one_->Write("dir/sub/deep", "looked at, and written once more");
  ASSERT_TRUE(one_->fs().GetAttr(same));
  ASSERT_TRUE(one_->fs().GetAttr(deep));
  ASSERT_TRUE(one_->fs().Write({}, deep, 0, AsBytes(string("LOOKED")), {}));
  ASSERT_TRUE(one_->workspace().Discard());
  const auto told = one_->TakeTold();
  const auto of = [&](Ino ino) {
    return std::ranges::find_if(
        told, [&](const StaleCaches& stale) { return HasInode(stale, ino); });
  };
  ASSERT_NE(of(same), told.end());
  ASSERT_NE(of(deep), told.end());
  EXPECT_LT(of(same), of(deep));
}

/// The new file has another inode number. The kernel may have forgotten the
/// file, and what its directory lists not.
TEST_F(RefreshTest, ACommitTellsOfDirectoriesThatListWhatItReplaced) {
  const Ino sub = one_->Find("dir/sub");
  one_->Write("dir/sub/deep", "changed");
  one_->fs().Forget(one_->Find("dir/sub/deep"), 100);
  one_->TakeStale();
  ASSERT_EQ(one_->Commit(), 0U);
  EXPECT_TRUE(HasInode(one_->TakeStale(), sub));
}

TEST_F(RefreshTest, AnAppendGoesToTheEndThatTheKernelWasNotToldOf) {
  const Ino same = one_->Find("same");
  const auto append = [&](uint64_t offset, const string& text) {
    EXPECT_TRUE(
        one_->fs().Write({}, same, offset, AsBytes(text), {.append = true}));
  };
  append(4, " as it was");
  EXPECT_EQ(one_->Read(same), "same as it was");
  one_->Discard();
  append(14, "1");
  append(15, "23");
  EXPECT_EQ(one_->Read(same), "same123");
  EXPECT_EQ(one_->fs().GetAttr(same)->st_size, 7);
  append(7, "4");
  EXPECT_EQ(one_->Read(same), "same1234");
}

TEST_F(RefreshTest, NamesWhatCameAndWhatWent) {
  const Ino dir = two_->Find("dir");
  const Ino sub = two_->Find("dir/sub");
  const Ino deep = two_->Find("dir/sub/deep");
  EXPECT_EQ(two_->Read(deep), "deep");
  EXPECT_EQ(two_->Find("dir/new"), kNoIno);
  const Ino in_one = one_->Find("dir");
  one_->Write("dir/new", "new");
  ASSERT_TRUE(one_->fs().Unlink({}, one_->Find("dir/sub"), "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, in_one, "sub"));
  EXPECT_EQ(one_->Commit(), 0U);
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(HasName(stale, dir, "new"));
  EXPECT_TRUE(HasName(stale, dir, "sub"));
  EXPECT_TRUE(HasName(stale, sub, "deep"));
  EXPECT_EQ(two_->Names(dir), std::vector<string>{"new"});
  EXPECT_EQ(two_->Find("dir/sub"), kNoIno);
  // Who has them open goes on.
  EXPECT_EQ(two_->Read(deep), "deep");
  EXPECT_EQ(two_->fs().GetAttr(deep)->st_nlink, 0U);
  EXPECT_EQ(two_->fs().GetAttr(sub)->st_nlink, 0U);
  EXPECT_FALSE(two_->fs().Create({}, sub, "x", 0644));
}

TEST_F(RefreshTest, PartsHardLinksOfWhichOneWasReplaced) {
  const Ino file = two_->Find("file");
  EXPECT_EQ(two_->Find("link"), file);
  one_->Write("new", "new");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "new", kRootIno, "link",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_TRUE(HasName(two_->Refresh(), kRootIno, "link"));
  EXPECT_EQ(two_->Find("file"), file);
  EXPECT_EQ(two_->fs().GetAttr(file)->st_nlink, 1U);
  EXPECT_EQ(two_->Read("link"), "new");
  EXPECT_EQ(two_->Read("file"), "old");
}

TEST_F(RefreshTest, KeepsWhatTheTransactionChanged) {
  two_->Write("same", "mine");
  two_->Write("dir/sub/deep", "mine");
  one_->Write("same", "theirs");
  ASSERT_TRUE(one_->fs().Unlink({}, one_->Find("dir/sub"), "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, one_->Find("dir"), "sub"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(two_->Read("same"), "mine");
  EXPECT_EQ(two_->Read("dir/sub/deep"), "mine");
  EXPECT_EQ(two_->Names(two_->Find("dir")), std::vector<string>{"sub"});
  EXPECT_EQ(two_->Names(two_->Find("dir/sub")), std::vector<string>{"deep"});
  EXPECT_EQ(two_->Commit(), 2U);
  ASSERT_TRUE(two_->workspace().Discard());
  EXPECT_EQ(two_->Read("same"), "theirs");
  EXPECT_EQ(two_->Find("dir/sub"), kNoIno);
}

TEST_F(RefreshTest, DoesNotMixAFileWithTheOneThatReplacedItsBase) {
  // Of the small one there is a pre-image.
  base_.File("large", string(Preimages::kMaxSize + 1, 'l'));
  const Ino small = two_->Find("same"), large = two_->Find("large");
  for (const Ino file : {small, large}) {
    ASSERT_TRUE(two_->fs().Write({}, file, 1, AsBytes(string("X")), {}));
  }
  one_->Write("same", "othr");
  one_->Write("large", "othr");
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(two_->Read(small), "sXme");
  EXPECT_EQ(two_->Read(large), "lX" + string(98, 'l'));
  EXPECT_EQ(two_->Commit(), 2U);
  ASSERT_TRUE(two_->workspace().Discard());
  EXPECT_EQ(two_->Read(small), "othr");
  EXPECT_EQ(two_->Read(large), "othr");
}

TEST_F(RefreshTest, ShowsTheContentThatAnotherCommitReplaced) {
  // Nothing of it was copied, and nobody has read it before.
  const string large(Preimages::kMaxSize + 1, 'l');
  base_.File("large", large);
  base_.File("gone/deep/file", "gone");
  const Ino large_file = two_->Find("large");
  const Ino deep = two_->Find("gone/deep/file");
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "same", kRootIno, "moved",
                                RenameMode::kReplace));
  for (const Ino file : {large_file, deep}) {
    ASSERT_TRUE(two_->fs().SetAttr({}, file, {.mode = 0600}));
  }
  one_->Write("same", "othr");
  one_->Write("large", "othr");
  const Ino gone = one_->Find("gone"), above = one_->Find("gone/deep");
  ASSERT_TRUE(one_->fs().Unlink({}, above, "file"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, gone, "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, kRootIno, "gone"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(two_->Read("moved"), "same");
  EXPECT_EQ(two_->Read("large"), large.substr(0, 100));
  EXPECT_EQ(two_->Read("gone/deep/file"), "gone");
  // A second commit puts the other one away, too.
  one_->Write("same", "more");
  EXPECT_EQ(one_->Commit(), 0U);
  Reopen();
  EXPECT_EQ(two_->Read("moved"), "same");
  EXPECT_EQ(two_->Read("large"), large.substr(0, 100));
  EXPECT_EQ(two_->Read("gone/deep/file"), "gone");
  // What is no longer kept cannot be shown.
  ASSERT_TRUE(one_->workspace().CollectGarbage({.commits = 0, .bytes = 0}));
  Reopen();
  EXPECT_EQ(two_->Read("moved"), "error " + std::to_string(ESTALE));
}

TEST_F(RefreshTest, ShowsTheContentOfAFileThatAnotherCommitOnlyMoved) {
  const string large(Preimages::kMaxSize + 1, 'l');
  base_.File("large", large);
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "same", kRootIno, "moved",
                                RenameMode::kReplace));
  const Ino large_file = two_->Find("large"), deep = two_->Find("dir/sub/deep");
  for (const Ino file : {large_file, deep}) {
    ASSERT_TRUE(two_->fs().SetAttr({}, file, {.mode = 0600}));
  }
  const auto move = [&](const string& from, const string& to) {
    ASSERT_TRUE(one_->fs().Rename({}, kRootIno, from, kRootIno, to,
                                  RenameMode::kReplace));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  };
  const auto expect_all = [&] {
    EXPECT_EQ(two_->Read("moved"), "same");
    EXPECT_EQ(two_->Read("large"), large.substr(0, 100));
    EXPECT_EQ(two_->Read("dir/sub/deep"), "deep");
  };
  move("same", "theirs");
  move("large", "their large");
  move("dir", "their dir");
  expect_all();
  Reopen();
  expect_all();
  // Once more, and what is in its place is another file.
  move("theirs", "large");
  move("their dir", "same");
  expect_all();
  // Theirs comes along, and ours is a copy.
  EXPECT_GE(two_->workspace().Commit({})->conflicts.size(), 3U);
  EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
  EXPECT_EQ(two_->Read("large"), "same");
  EXPECT_EQ(two_->Read("same/sub/deep"), "deep");
}

TEST_F(RefreshTest, ShowsTheContentOfAFileThatAnUndoMoved) {
  base_.File("other", "othr");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "other",
                                RenameMode::kExchange));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("same"), {.mode = 0600}));
  ASSERT_TRUE(one_->workspace().Undo("one"));
  two_->Refresh();
  EXPECT_EQ(two_->Read("same"), "othr");
  EXPECT_EQ(two_->Read("other"), "othr");
  Reopen();
  EXPECT_EQ(two_->Read("same"), "othr");
}

/// What the daemon reads is not what it had open when the file was another one.
class ReturnedFileTest : public RefreshTest {
 protected:
  void SetUp() override {
    RefreshTest::SetUp();
    file_ = two_->Find("same");
    ASSERT_TRUE(two_->fs().SetAttr({}, file_, {.mode = 0400}));
    one_->Write("same", "othr");
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
    ASSERT_TRUE(two_->workspace().MakeSavepoint("touched"));
    // For which it is opened as the base has it now.
    ASSERT_TRUE(two_->fs().SetAttr({}, file_, {.size = 0}));
    ASSERT_TRUE(one_->workspace().Undo("one"));
    two_->Refresh();
  }
  Ino file_ = kNoIno;
};

TEST_F(ReturnedFileTest, IsReadAsTheBaseHasItAfterADiscard) {
  two_->Discard();
  EXPECT_EQ(two_->Read("same"), "same");
}

TEST_F(ReturnedFileTest, IsReadAsTheBaseHasItAfterARollback) {
  ASSERT_TRUE(two_->workspace().Rollback("touched"));
  EXPECT_EQ(two_->Read("same"), "same");
}

class TouchedForNothingTest : public RefreshTest {
 protected:
  /// The second transaction touches files and leaves them as they were.
  void SetUp() override {
    RefreshTest::SetUp();
    same_ = two_->Find("same");
    deep_ = two_->Find("dir/sub/deep");
    const auto move = [&](const string& from, const string& to) {
      ASSERT_TRUE(two_->fs().Rename({}, kRootIno, from, kRootIno, to,
                                    RenameMode::kReplace));
    };
    move("same", "moved");
    move("moved", "same");
    for (const uint32_t mode : {0600U, 0644U}) {
      ASSERT_TRUE(two_->fs().SetAttr({}, deep_, {.mode = mode}));
    }
    EXPECT_EQ(two_->Changes(), std::vector<string>());
  }
  void OthersCommit(const string& text) {
    one_->Write("same", text);
    one_->Write("dir/sub/deep", text);
    ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("same"), {.mode = 0600}));
    EXPECT_EQ(one_->Commit(), 0U);
  }
  void ExpectTheirs(const string& text) {
    for (const string path : {"same", "dir/sub/deep"}) {
      EXPECT_EQ(two_->Read(path), text);
      const auto st = two_->fs().GetAttr(two_->Find(path));
      ASSERT_TRUE(st);
      EXPECT_EQ(static_cast<size_t>(st->st_size), text.size());
      EXPECT_EQ(st->st_mode & 07777, path == "same" ? 0600U : 0644U);
    }
    EXPECT_EQ(two_->Changes(), std::vector<string>());
  }

  Ino same_ = kNoIno, deep_ = kNoIno;
};

TEST_F(TouchedForNothingTest, IsTheBasesAfterARefresh) {
  OthersCommit("others");
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(HasInode(stale, same_));
  EXPECT_TRUE(HasInode(stale, deep_));
  ExpectTheirs("others");
  OthersCommit("again");
  two_->Refresh();
  ExpectTheirs("again");
  Reopen();
  ExpectTheirs("again");
  const auto report = two_->workspace().Commit({});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->changes, 0U);
  ExpectTheirs("again");
  two_.reset();
  one_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(TouchedForNothingTest, IsTheBasesAfterAResume) {
  two_.reset();
  OthersCommit("others");
  Reopen();
  ExpectTheirs("others");
}

TEST_F(TouchedForNothingTest, IsTheBasesWhoeverChangedThat) {
  base_.File("same", "behind our back");
  EXPECT_EQ(two_->Changes(), std::vector<string>());
  EXPECT_EQ(two_->Read("same"), "behind our back");
  const auto report = two_->workspace().Commit({});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->changes, 0U);
  EXPECT_EQ(two_->Read("same"), "behind our back");
}

TEST_F(TouchedForNothingTest, IsJournaledWithTheNextChange) {
  ASSERT_TRUE(two_->workspace().MakeSavepoint("touched"));
  const auto operations = [&] {
    return two_->workspace().GetStatus()->operations;
  };
  const uint64_t before = operations();
  base_.File("same", "behind our back");
  EXPECT_EQ(two_->Changes(), std::vector<string>());
  EXPECT_EQ(two_->Read("same"), "behind our back");
  EXPECT_TRUE(two_->workspace().ChangesSince("touched", "", {})->empty());
  EXPECT_TRUE(two_->workspace().FindConflicts()->empty());
  EXPECT_EQ(operations(), before) << "a query wrote to the journal";
  // What was not journaled is found again.
  Reopen();
  EXPECT_EQ(operations(), before);
  EXPECT_EQ(two_->Read("same"), "behind our back");
  two_->Write("new", "new");
  EXPECT_GT(operations(), before + 1);
  Reopen();
  EXPECT_EQ(two_->Read("same"), "behind our back");
  EXPECT_EQ(two_->Changes(), std::vector<string>({"A new"}));
  ASSERT_TRUE(two_->workspace().Rollback("touched"));
  EXPECT_EQ(two_->Changes(), std::vector<string>());
  EXPECT_EQ(two_->Read("same"), "behind our back");
  two_.reset();
  one_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(TouchedForNothingTest, IsWhatARollbackMakesOfIt) {
  // A savepoint at which it was not what it had been.
  ASSERT_TRUE(two_->fs().SetAttr({}, same_, {.mode = 0600}));
  ASSERT_TRUE(two_->workspace().MakeSavepoint("changed"));
  ASSERT_TRUE(two_->fs().SetAttr({}, same_, {.mode = 0644}));
  OthersCommit("others");
  two_->Refresh();
  ExpectTheirs("others");
  ASSERT_TRUE(two_->workspace().Rollback("changed"));
  EXPECT_EQ(two_->Read("same"), "same");
  EXPECT_EQ(two_->Changes(), std::vector<string>({"M same"}));
  EXPECT_EQ(two_->Commit(), 1U);
  two_.reset();
  one_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

class LinkedForNothingTest : public RefreshTest {
 protected:
  /// The second one gives a file another name, which the first one moves, and
  /// takes that away.
  void SetUp() override {
    RefreshTest::SetUp();
    const Ino dir = two_->Find("dir");
    ASSERT_TRUE(two_->fs().Link({}, two_->Find("same"), dir, "z"));
    ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "removed",
                                  RenameMode::kExchange));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
    EXPECT_EQ(two_->Read("same"), "gone");
    EXPECT_EQ(two_->Read("removed"), "same");
    if (HasFailure()) return;
    ASSERT_TRUE(two_->fs().Unlink({}, dir, "z"));
  }
  /// What is written to is elsewhere again.
  void MakeConflict() {
    two_->Write("same", "ours");
    ASSERT_TRUE(one_->workspace().Undo("one"));
    two_->Refresh();
    EXPECT_EQ(two_->Commit(), 1U);
  }
  void ExpectAfter(const string& same, const string& removed) {
    one_->Refresh();
    for (Transaction* seen : {one_.get(), two_.get()}) {
      EXPECT_EQ(seen->Read("same"), same);
      EXPECT_EQ(seen->Read("removed"), removed);
    }
    two_.reset();
    one_.reset();
    EXPECT_EQ(FindProblems(directory_.path()), "");
  }
};

TEST_F(LinkedForNothingTest, IsNothing) {
  EXPECT_EQ(two_->Changes(), std::vector<string>());
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(two_->Read("same"), "gone");
  two_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(LinkedForNothingTest, IsNothingBesidesAConflictThatTheyWin) {
  MakeConflict();
  EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
  ExpectAfter("same", "gone");
}

TEST_F(LinkedForNothingTest, IsNothingBesidesAConflictThatWeWin) {
  MakeConflict();
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  ExpectAfter("ours", "gone");
}

TEST_F(TouchedForNothingTest, IsTheBasesAfterARollbackToWhatItWas) {
  ASSERT_TRUE(two_->workspace().MakeSavepoint("touched"));
  OthersCommit("others");
  two_->Refresh();
  EXPECT_EQ(two_->ChangesSince("touched"), std::vector<string>());
  const auto rolled = two_->workspace().Rollback("touched");
  ASSERT_TRUE(rolled);
  EXPECT_EQ(rolled->undone, 0U);
  ExpectTheirs("others");
  EXPECT_EQ(two_->ChangesSince("touched"), std::vector<string>());
}

TEST_F(RefreshTest, OfTwoFilesForOneNameTheChangedOneHasItAfterAResume) {
  // Touched by the name that others take for another file, and left as it was.
  const Ino file = two_->Find("file");
  ASSERT_EQ(two_->Find("link"), file);
  ASSERT_TRUE(two_->fs().Link({}, file, kRootIno, "third"));
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "third"));
  const auto move = [&](const string& from, const string& to) {
    ASSERT_TRUE(one_->fs().Rename({}, kRootIno, from, kRootIno, to,
                                  RenameMode::kReplace));
    one_->Write(from, "B");
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  };
  move("file", "theirs");
  two_->Write("file", "mine");
  move("link", "their link");
  EXPECT_EQ(two_->Read("file"), "mine");
  Reopen();
  EXPECT_EQ(two_->Read("file"), "mine");
  EXPECT_EQ(two_->Changes(), std::vector<string>({"M file"}));
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(two_->Read("file"), "mine");
}

TEST_F(RefreshTest, MineOfAFileThatTheyMovedIsACopy) {
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "same", kRootIno, "ours",
                                RenameMode::kReplace));
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "theirs",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  one_->Refresh();
  EXPECT_EQ(one_->Read("ours"), "same");
  EXPECT_EQ(one_->Read("theirs"), "same");
  EXPECT_EQ(one_->Read("same"), "none");
}

TEST_F(RefreshTest, MineTakesTheRestOfAFileFromTheCommitThatReplacedIt) {
  base_.File("large", string(Preimages::kMaxSize + 1, 'l'));
  ASSERT_TRUE(
      two_->fs().Write({}, two_->Find("large"), 1, AsBytes(string("X")), {}));
  one_->Write("large", "othr");
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  one_->Refresh();
  EXPECT_EQ(one_->Read("large"), "lX" + string(98, 'l'));
}

TEST_F(RefreshTest, TheKernelForgetsNamesThatAConflictTook) {
  two_->Write("same", "mine");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
  EXPECT_TRUE(HasName(two_->TakeStale(), kRootIno, "same"));
  EXPECT_EQ(two_->Find("same"), kNoIno);
}

TEST_F(RefreshTest, TheKernelForgetsNamesThatADiscardOfAPartTook) {
  two_->Write("same", "mine");
  two_->Write("other", "stays");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->workspace().DiscardPart({"same"}));
  EXPECT_TRUE(HasName(two_->TakeStale(), kRootIno, "same"));
  EXPECT_EQ(two_->Find("same"), kNoIno);
}

TEST_F(RefreshTest, AttributesOfAFileAreNoChangeByAnyOfItsNames) {
  const string path = directory_.path() + "/file";
  ASSERT_EQ(::setxattr(path.c_str(), "user.k", "v", 1, 0), 0);
  const Ino file = two_->Find("file");
  ASSERT_EQ(two_->Find("link"), file);
  ASSERT_TRUE(two_->fs().SetAttr({}, file, {.mode = 0644}));
  EXPECT_EQ(two_->Changes(), std::vector<string>());
  // Nor are they when it takes the place of a file that has the same.
  const string same = directory_.path() + "/same";
  ASSERT_EQ(::setxattr(same.c_str(), "user.k", "v", 1, 0), 0);
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(two_->fs().Link({}, file, kRootIno, "same"));
  EXPECT_EQ(two_->Changes(), std::vector<string>({"M same"}));
}

TEST_F(RefreshTest, AFileThatWasCutAndGrewAgainIsChanged) {
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("same"), {.size = 1}));
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("same"), {.size = 4}));
  EXPECT_EQ(two_->Changes(), std::vector<string>({"M same"}));
  two_->Write("removed", "g");
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("removed"), {.size = 4}));
  EXPECT_EQ(two_->Changes(), std::vector<string>({"M removed", "M same"}));
}

TEST_F(RefreshTest, ADiscardShowsOfSeveralNamesThoseThatTheBaseHas) {
  for (const string path : {"file", "link"}) {
    const string other = path == "file" ? "link" : "file";
    ASSERT_NE(two_->Find("file"), kNoIno);
    const Ino file = two_->Find("link");
    ASSERT_EQ(two_->Find("file"), file);
    ASSERT_TRUE(two_->fs().SetAttr({}, file, {.mode = 0600}));
    two_->Write("other", "stays");
    std::filesystem::remove(directory_.path() + "/file");
    std::filesystem::remove(directory_.path() + "/link");
    base_.File(path, "another");
    const auto part = two_->workspace().DiscardPart({"file"});
    ASSERT_TRUE(part) << part.error().ToString() << " for " << path;
    EXPECT_EQ(two_->Find(other), kNoIno);
    EXPECT_EQ(two_->Read(path), "another");
    base_.HardLink(path, other);
    two_->Refresh();
  }
}

TEST_F(RefreshTest, SeesACommitWhoseDaemonDiedBeforeItToldAnybody) {
  EXPECT_EQ(two_->Read("same"), "same");
  one_->Write("same", "new");
  EXPECT_EQ(one_->Commit(), 0U);
  one_.reset();
  // The first thing that every command does.
  ASSERT_TRUE(two_->workspace().Recover());
  EXPECT_TRUE(HasInode(two_->TakeStale(), two_->Find("same")));
  EXPECT_EQ(two_->Read("same"), "new");
  ASSERT_TRUE(two_->workspace().Recover());
  EXPECT_TRUE(two_->TakeStale().inodes.empty()) << "looked at once";
}

TEST_F(RefreshTest, OwnCommitsAndDiscardsOfOthersAreNoNews) {
  one_->Write("same", "new");
  EXPECT_EQ(one_->Commit(), 0U);
  one_->TakeStale();
  ASSERT_TRUE(one_->workspace().Recover());
  EXPECT_TRUE(one_->TakeStale().inodes.empty());
  two_->Refresh();
  one_->Write("same", "newer");
  one_->Discard();
  ASSERT_TRUE(two_->workspace().Recover());
  EXPECT_TRUE(two_->TakeStale().inodes.empty());
}

TEST_F(RefreshTest, ARollbackShowsTheBaseAsItIsNow) {
  base_.File("gone", "gone");
  const auto savepoint = two_->workspace().MakeSavepoint("s");
  ASSERT_TRUE(savepoint) << savepoint.error().ToString();
  two_->Write("same", "mine");
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("gone"), {.mode = 0600}));
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("dir/sub"), {.mode = 0700}));
  one_->Write("same", "theirs");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "gone"));
  const Ino dir = one_->Find("dir");
  ASSERT_TRUE(
      one_->fs().Rename({}, dir, "sub", dir, "away", RenameMode::kReplace));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->workspace().Rollback("s"));
  EXPECT_EQ(two_->Read("same"), "theirs");
  EXPECT_EQ(two_->Find("gone"), kNoIno);
  EXPECT_EQ(two_->Find("dir/sub"), kNoIno);
  EXPECT_EQ(two_->Read("dir/away/deep"), "deep");
  EXPECT_TRUE(HasName(two_->TakeStale(), kRootIno, "gone"));
}

TEST_F(RefreshTest, ARollbackLetsGoOfDirectoriesThatWereKeptForItsChanges) {
  ASSERT_TRUE(two_->workspace().MakeSavepoint("s"));
  ASSERT_TRUE(
      two_->fs().SetAttr({}, two_->Find("dir/sub/deep"), {.mode = 0600}));
  const Ino dir = one_->Find("dir"), sub = one_->Find("dir/sub");
  ASSERT_TRUE(one_->fs().Unlink({}, sub, "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, dir, "sub"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, kRootIno, "dir"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(two_->Read("dir/sub/deep"), "deep");
  ASSERT_TRUE(two_->workspace().Rollback("s"));
  EXPECT_EQ(two_->Find("dir"), kNoIno);
  EXPECT_TRUE(HasName(two_->TakeStale(), kRootIno, "dir"));
}

TEST_F(RefreshTest, ADirectoryThatWasDeletedMovedAwayAndMovedBackIsThere) {
  const Ino ours = two_->Find("dir"), sub = two_->Find("dir/sub");
  ASSERT_TRUE(two_->fs().Unlink({}, sub, "deep"));
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, ours, "sub"));
  const auto move = [&](const string& from, const string& to) {
    const Ino dir = one_->Find("dir");
    ASSERT_TRUE(
        one_->fs().Rename({}, dir, from, dir, to, RenameMode::kReplace));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  };
  move("sub", "away");
  // Takes the whiteout along: the base has nothing there to be hidden.
  ASSERT_TRUE(two_->fs().MakeDirectory({}, ours, "sub", 0755));
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, ours, "sub"));
  move("away", "sub");
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("dir/sub"), {.mode = 0700}));
  EXPECT_EQ(two_->Read("dir/sub/deep"), "deep");
  EXPECT_EQ(two_->Changes(), std::vector<string>{"M dir/sub"});
  two_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(RefreshTest, ADirectoryThatIsAnotherOneNowGetsNoFileBack) {
  base_.File("open/x", "x");
  base_.File("closed/file", "text");
  const string root = directory_.path() + "/";
  ASSERT_EQ(
      ::link((root + "closed/file").c_str(), (root + "closed/other").c_str()),
      0);
  ASSERT_EQ(::chmod((root + "closed").c_str(), 0700), 0);
  const Ino before = two_->Find("open");
  ASSERT_NE(two_->Find("closed/file"), kNoIno);
  ASSERT_EQ(::renameat2(AT_FDCWD, (root + "open").c_str(), AT_FDCWD,
                        (root + "closed").c_str(), RENAME_EXCHANGE),
            0);
  const StaleCaches stale = two_->Refresh();
  EXPECT_TRUE(HasName(stale, kRootIno, "open"));
  const auto node = two_->fs().Lookup(kRootIno, "open");
  ASSERT_TRUE(node) << node.error().ToString();
  EXPECT_NE(node->ino, before);
  EXPECT_EQ(node->st.st_mode & 07777, 0700U);
  EXPECT_EQ(two_->Read("open/file"), "text");
  EXPECT_EQ(two_->Read("closed/x"), "x");
}

TEST_F(RefreshTest, ADirectoryThatIsAnotherOneNowTakesInNoDirectory) {
  base_.File("open/x", "text");
  const string root = directory_.path() + "/";
  ASSERT_EQ(::link((root + "open/x").c_str(), (root + "other").c_str()), 0);
  ASSERT_EQ(::mkdir((root + "closed").c_str(), 0700), 0);
  const Ino before = two_->Find("open"), file = two_->Find("open/x");
  ASSERT_EQ(two_->Find("other"), file);
  ASSERT_EQ(::rename((root + "open").c_str(), (root + "closed/sub").c_str()),
            0);
  ASSERT_EQ(::rename((root + "closed").c_str(), (root + "open").c_str()), 0);
  ASSERT_EQ(::unlink((root + "other").c_str()), 0);
  two_->Refresh();
  const auto node = two_->fs().Lookup(kRootIno, "open");
  ASSERT_TRUE(node) << node.error().ToString();
  EXPECT_NE(node->ino, before);
  EXPECT_EQ(node->st.st_mode & 07777, 0700U);
  EXPECT_EQ(two_->Find("open/sub/x"), file);
  EXPECT_EQ(two_->Read("open/sub/x"), "text");
}

TEST_F(RefreshTest, AnothersDirectoryThatADiscardShowsIsCounted) {
  two_->Write("new", "mine");
  ASSERT_TRUE(one_->fs().MakeDirectory({}, kRootIno, "new", 0755));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  two_->Write("stays", "mine");
  ASSERT_TRUE(two_->workspace().DiscardPart({"new"}));
  struct stat base{};
  ASSERT_EQ(::stat(directory_.path().c_str(), &base), 0);
  const auto shown = two_->fs().GetAttr(kRootIno);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->st_nlink, base.st_nlink);
  two_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

/// Directory dir with what is in it, deleted by one while the other goes on in
/// it.
class DeletedDirectoryTest : public RefreshTest {
 protected:
  void DeleteIt() {
    const Ino dir = one_->Find("dir"), sub = one_->Find("dir/sub");
    ASSERT_TRUE(one_->fs().Unlink({}, sub, "deep"));
    ASSERT_TRUE(one_->fs().RemoveDirectory({}, dir, "sub"));
    ASSERT_TRUE(one_->fs().RemoveDirectory({}, kRootIno, "dir"));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  }
  void Save() { ASSERT_TRUE(two_->workspace().MakeSavepoint("s")); }
};

TEST_F(DeletedDirectoryTest, ShowsWhatCameToItSinceASavepoint) {
  two_->Write("dir/first", "first");
  Save();
  DeleteIt();
  two_->Write("dir/second", "second");
  two_->Write("dir/first", "changed");
  EXPECT_EQ(two_->ChangesSince("s"),
            (std::vector<string>{"M dir/first", "A dir/second"}));
}

TEST_F(DeletedDirectoryTest, IsThereBeforeAnybodySawThatItWent) {
  two_->Write("dir/sub/deep", "first");
  Save();
  two_->Write("dir/sub/deep", "second");
  std::filesystem::remove_all(directory_.path() + "/dir");
  EXPECT_EQ(two_->ChangesSince("s"), std::vector<string>{"M dir/sub/deep"});
}

TEST_F(DeletedDirectoryTest, ShowsThatItMovedSinceASavepoint) {
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "dir", kRootIno, "moved",
                                RenameMode::kReplace));
  two_->Write("moved/mine", "mine");
  DeleteIt();
  Save();
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "moved", kRootIno, "again",
                                RenameMode::kReplace));
  EXPECT_EQ(two_->ChangesSince("s"),
            (std::vector<string>{"R again", "R again/mine"}));
}

/// A file of two names, of which one deletes the first and changes the file,
/// while the other takes both names away.
class LostLinkTest : public RefreshTest {
 protected:
  void SetUp() override {
    RefreshTest::SetUp();
    two_->Find("file");
    two_->Find("link");
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "file"));
    two_->Write("link", "mine");
    one_->Find("link");
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "file"));
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "link"));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  }
};

TEST_F(LostLinkTest, IsWhereItWasAfterAResume) {
  EXPECT_EQ(two_->Read("link"), "mine");
  Reopen();
  EXPECT_EQ(two_->Read("link"), "mine");
  EXPECT_EQ(two_->Find("file"), kNoIno);
  two_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(LostLinkTest, IsCommittedUnderTheNameThatIsLeft) {
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_TRUE(base_.Exists("link"));
  EXPECT_FALSE(base_.Exists("file"));
}

TEST_F(RefreshTest, DropsANameThatTheBaseTookBackFromAChangedFile) {
  ASSERT_TRUE(one_->fs().Link({}, one_->Find("same"), kRootIno, "new"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_NE(two_->Find("new"), kNoIno);
  two_->Write("same", "mine");
  ASSERT_TRUE(one_->workspace().Undo(""));
  two_->Refresh();
  EXPECT_EQ(two_->Find("new"), kNoIno);
  EXPECT_EQ(two_->Read("same"), "mine");
  Reopen();
  EXPECT_EQ(two_->Find("new"), kNoIno);
  EXPECT_EQ(two_->Read("same"), "mine");
}

/// Others give a name of a file that was written to to another file: whether or
/// not somebody looked up its other names, that is a conflict, and until it is
/// settled what was written is seen by all of them.
class GivenNameTest : public RefreshTest,
                      public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    RefreshTest::SetUp();
    const bool is_known = GetParam();
    if (is_known) {
      ASSERT_NE(two_->Find("link"), kNoIno);
    }
    two_->Write("file", "mine");
  }
  void ExpectOurs() {
    for (const string path : {"link", "moved", "file"}) {
      EXPECT_EQ(two_->Read(path), "mine") << path;
      EXPECT_EQ(two_->fs().GetAttr(two_->Find(path))->st_ino,
                NumberInBase("link"));
    }
    EXPECT_EQ(two_->Changes(),
              (std::vector<string>{"M file", "M link", "M moved"}));
    const auto conflicts = two_->workspace().FindConflicts();
    ASSERT_TRUE(conflicts);
    EXPECT_EQ(*conflicts,
              (std::vector<Conflict>{{"file", "changed", "modified", ""}}));
  }
};
INSTANTIATE_TEST_SUITE_P(, GivenNameTest, ::testing::Bool(),
                         [](const auto& known) {
                           return string(known.param ? "Known" : "NotKnown");
                         });

TEST_P(GivenNameTest, IsAConflict) {
  const auto savepoint = two_->workspace().MakeSavepoint("before");
  ASSERT_TRUE(savepoint) << savepoint.error().ToString();
  for (const auto& [from, to] :
       {std::pair("file", "moved"), std::pair("same", "file")}) {
    ASSERT_TRUE(one_->fs().Rename({}, kRootIno, from, kRootIno, to,
                                  RenameMode::kReplace));
  }
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ExpectOurs();
  Reopen();
  ExpectOurs();
  ASSERT_TRUE(two_->workspace().Rollback("before"));
  ExpectOurs();
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  for (const string path : {"file", "link", "moved"}) {
    EXPECT_EQ(base_.Read(path), "mine") << path;
    EXPECT_EQ(two_->Read(path), "mine") << path;
  }
  ASSERT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(base_.Read("file"), "same");
  EXPECT_EQ(base_.Read("link"), "old");
  EXPECT_EQ(base_.Read("moved"), "old");
  two_.reset();
  one_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_P(GivenNameTest, IsAConflictWhoeverGaveIt) {
  const string root = directory_.path();
  std::filesystem::rename(root + "/file", root + "/moved");
  std::filesystem::rename(root + "/same", root + "/file");
  EXPECT_NE(two_->Changes(), std::vector<string>());
  ExpectOurs();
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
  EXPECT_EQ(two_->Read("file"), "same");
  EXPECT_EQ(two_->Read("link"), "old");
  EXPECT_EQ(base_.Read("file"), "same");
  EXPECT_EQ(base_.Read("link"), "old");
}

TEST_F(RefreshTest, AChangedFileThatTheBaseHasElsewhereKeepsItsNumber) {
  const auto number = [&](const string& path) {
    return two_->fs().GetAttr(two_->Find(path))->st_ino;
  };
  const Ino same = two_->Find("same");
  const uint64_t before = number("same");
  two_->Write("same", "mine");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "removed",
                                RenameMode::kExchange));
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_TRUE(HasInode(two_->Refresh(), same));
  EXPECT_EQ(number("same"), before);
  EXPECT_NE(number("removed"), before);
  Reopen();
  EXPECT_EQ(NumberInBase("removed"), before);
  EXPECT_EQ(number("same"), before);
  EXPECT_NE(number("removed"), before);

  ASSERT_TRUE(one_->workspace().Undo(""));
  two_->Refresh();
  EXPECT_EQ(number("same"), before);
  EXPECT_EQ(two_->Read("same"), "mine");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "removed",
                                RenameMode::kExchange));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_EQ(number("same"), before);
  two_->Discard();
  EXPECT_EQ(two_->Read("same"), "gone");
  EXPECT_NE(number("same"), number("removed"));
  Reopen();
  EXPECT_EQ(number("same"), NumberInBase("same"));
  EXPECT_EQ(number("removed"), NumberInBase("removed"));
}

TEST_F(RefreshTest, DropsTheOnlyBaseNameOfAFileThatGotAnother) {
  one_->Write("fresh", "theirs");
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->fs().Link({}, two_->Find("fresh"), kRootIno, "mine"));
  ASSERT_TRUE(one_->workspace().Undo(""));
  two_->Refresh();
  EXPECT_EQ(two_->Find("fresh"), kNoIno);
  EXPECT_NE(two_->Find("mine"), kNoIno);
  Reopen();
  EXPECT_EQ(two_->Find("fresh"), kNoIno);
  EXPECT_NE(two_->Find("mine"), kNoIno);
}

TEST_F(RefreshTest, FindsTheContentOfAMovedFileByTheNameThatTheBaseHas) {
  ASSERT_TRUE(one_->fs().Link({}, one_->Find("same"), kRootIno, "new"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_NE(two_->Find("new"), kNoIno);
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "same", kRootIno, "moved",
                                RenameMode::kReplace));
  ASSERT_TRUE(one_->workspace().Undo(""));
  two_->Refresh();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Find("new"), kNoIno);
    EXPECT_EQ(two_->Find("same"), kNoIno);
    EXPECT_EQ(two_->Read("moved"), "same");
  }
  // Its content was never read; that it was touched its link count explains.
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_FALSE(base_.Exists("same"));
  EXPECT_EQ(base_.Read("moved"), "same");
}

TEST_F(RefreshTest, FindsAChangedFileByANameThatNobodyLookedUp) {
  base_.Directory("far");
  ASSERT_TRUE(one_->fs().Link({}, one_->Find("same"), one_->Find("far"), "x"));
  ASSERT_TRUE(one_->fs().Link({}, one_->Find("same"), kRootIno, "new"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  two_->Write("new", "mine");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "new"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Find("new"), kNoIno);
    EXPECT_EQ(two_->Read("far/x"), "mine");
  }
}

/// What others made of a base under one that only looked at it, or touched it
/// and left it as it was.
class FollowTest : public RefreshTest {
 protected:
  void TearDown() override {
    two_.reset();
    one_.reset();
    EXPECT_EQ(FindProblems(directory_.path()), "");
  }
  static void Touch(Transaction& by, const string& path) {
    for (const uint32_t mode : {0600U, 0644U}) {
      ASSERT_TRUE(by.fs().SetAttr({}, by.Find(path), {.mode = mode}));
    }
  }
  /// As mv(1) and ln -f(1) in the root.
  static void Move(Transaction& by, const string& from, const string& to,
                   RenameMode mode = RenameMode::kReplace) {
    by.Find(to);
    ASSERT_TRUE(by.fs().Rename({}, kRootIno, from, kRootIno, to, mode));
  }
  static void Link(Transaction& by, const string& from, const string& to) {
    if (by.Find(to) != kNoIno) {
      ASSERT_TRUE(by.fs().Unlink({}, kRootIno, to));
    }
    ASSERT_TRUE(by.fs().Link({}, by.Find(from), kRootIno, to));
  }
  void OthersCommit() {
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
  }
  /// There is nothing to commit, and the mount has what the base has.
  void ExpectNoChange(const std::vector<string>& names) {
    for (const string& name : names) {
      const string there = base_.Exists(name) ? base_.Read(name) : "none";
      EXPECT_EQ(two_->Read(name), there) << name;
    }
    EXPECT_EQ(two_->Changes(), std::vector<string>());
    const auto report = two_->workspace().Commit({});
    ASSERT_TRUE(report);
    EXPECT_EQ(report->changes, 0U);
    EXPECT_TRUE(report->conflicts.empty());
  }
};

TEST_F(FollowTest, WhatTheyMadeALinkOfAnotherIsThat) {
  Touch(*two_, "removed");
  const Ino same = two_->Find("same");
  Link(*one_, "same", "removed");
  OthersCommit();
  EXPECT_EQ(two_->Find("removed"), same);
  two_->Write("fresh", "fresh");
  EXPECT_EQ(two_->Commit(), 0U);
  two_->Write("removed", "written by one");
  EXPECT_EQ(two_->Read("same"), "written by one");
}

TEST_F(FollowTest, WhatIsDroppedIsTheFileThatTheyMadeItALinkOf) {
  const Ino same = two_->Find("same");
  const Ino removed = two_->Find("removed");
  two_->Write("removed", "ours");
  two_->Write("other", "stays");
  Link(*one_, "same", "removed");
  OthersCommit();
  ASSERT_TRUE(two_->workspace().DiscardPart({"removed"}));
  EXPECT_EQ(two_->Find("removed"), same);
  EXPECT_NE(two_->Find("removed"), removed);
  two_->Write("removed", "by one name");
  EXPECT_EQ(two_->Read("same"), "by one name");
}

TEST_F(FollowTest, ARollbackLeavesNamesOfWhatTheyMoved) {
  Touch(*two_, "same");
  ASSERT_TRUE(two_->workspace().MakeSavepoint("touched"));
  Move(*one_, "same", "g");
  Link(*one_, "g", "h");
  one_->Write("same", "new");
  OthersCommit();
  two_->Write("g", "mine");
  ASSERT_TRUE(two_->workspace().Rollback("touched"));
  EXPECT_EQ(two_->Find("g"), two_->Find("h"));
  two_->Write("g", "by g");
  EXPECT_EQ(two_->Read("h"), "by g");
  EXPECT_EQ(two_->Read("same"), "new");
}

TEST_F(FollowTest, AFileOfSeveralNames) {
  Touch(*two_, "file");
  one_->Write("link", "longer than it was");
  OthersCommit();
  ExpectNoChange({"file", "link"});
}

TEST_F(FollowTest, AFileOfSeveralNamesByTheOneThatIsLeft) {
  for (const bool changes : {false, true}) {
    const Ino file = two_->Find("file");
    if (changes) two_->Write("file", "mine");
    Touch(*two_, "file");
    ASSERT_TRUE(two_->fs().Link({}, file, kRootIno, "third"));
    two_.reset();
    std::filesystem::remove(directory_.path() + "/file");
    two_ = std::make_unique<Transaction>(directory_.path(), "two");
    EXPECT_EQ(two_->Find("file"), kNoIno);
    EXPECT_EQ(two_->Read("third"), changes ? "mine" : "old");
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "third"));
    EXPECT_EQ(two_->Read("link"), changes ? "mine" : "old");
    EXPECT_EQ(two_->Changes().size(), changes ? 1U : 0U);
    two_->Discard();
    two_.reset();
    EXPECT_EQ(FindProblems(directory_.path()), "");
    base_.HardLink("link", "file");
    Reopen();
  }
}

TEST_F(FollowTest, AFileOfSeveralNamesOfWhichOneWasDeletedHere) {
  ASSERT_NE(two_->Find("file"), kNoIno);
  ASSERT_NE(two_->Find("link"), kNoIno);
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "link"));
  one_->Write("file", "theirs and longer");
  OthersCommit();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Read("file"), "theirs and longer");
    EXPECT_EQ(two_->Find("link"), kNoIno);
    EXPECT_EQ(two_->Changes(), std::vector<string>({"D link"}));
  }
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(base_.Read("file"), "theirs and longer");
  EXPECT_FALSE(base_.Exists("link"));
}

TEST_F(FollowTest, AChangedFileThatWasLinkedHereIsWhereItWasAfterAResume) {
  two_->Write("same", "mine");
  Link(*two_, "same", "own");
  Move(*one_, "removed", "same");
  OthersCommit();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Read("same"), "mine");
    EXPECT_EQ(two_->Read("own"), "mine");
    EXPECT_EQ(two_->Changes(), (std::vector<string>{"A own", "M same"}));
  }
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("same"), "mine");
  EXPECT_EQ(NumberInBase("same"), NumberInBase("own"));
}

/// Others put a directory where a file was changed here, and a name of another
/// file that was changed here into that.
TEST_F(FollowTest, AChangedFileHidesWhatIsInTheDirectoryInItsPlace) {
  two_->Write("same", "mine");
  two_->Write("file", "mine, too");
  for (const bool more : {false, true}) {
    if (!more) {
      one_->Find("same");
      ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
      ASSERT_TRUE(one_->fs().MakeDirectory({}, kRootIno, "same", 0755));
    } else {
      one_->Find("file");
      ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "file", one_->Find("same"),
                                    "below", RenameMode::kReplace));
    }
    OthersCommit();
    for (const bool reopens : {false, true}) {
      if (reopens) Reopen();
      EXPECT_EQ(two_->Read("same"), "mine");
      EXPECT_EQ(two_->Read("link"), "mine, too");
    }
  }
  EXPECT_EQ(two_->Commit(), 1U);
}

TEST_F(FollowTest, AFileThatIsGoneLosesItsLastName) {
  two_->Write("fresh", "fresh");
  EXPECT_EQ(two_->Commit(), 0U);
  Link(*two_, "fresh", "own");
  ASSERT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(two_->Find("fresh"), kNoIno);
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "own"));
  EXPECT_EQ(two_->Changes(), std::vector<string>());
}

TEST_F(FollowTest, AFileThatTheyDeleted) {
  Touch(*two_, "same");
  Touch(*two_, "file");
  for (const string name : {"same", "file"}) {
    ASSERT_NE(one_->Find(name), kNoIno);
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, name));
  }
  OthersCommit();
  ExpectNoChange({"same", "file", "link"});
}

TEST_F(FollowTest, FilesThatTheyExchanged) {
  Touch(*two_, "same");
  Touch(*two_, "removed");
  Move(*one_, "same", "removed", RenameMode::kExchange);
  OthersCommit();
  ExpectNoChange({"same", "removed"});
}

TEST_F(FollowTest, ADirectoryOfWhichTheyChangedTheMode) {
  two_->Write("dir/mine", "mine");
  const Ino dir = two_->Find("dir");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("dir"), {.mode = 0711}));
  OthersCommit();
  EXPECT_EQ(two_->fs().GetAttr(dir)->st_mode & 07777, 0711U);
  EXPECT_EQ(two_->Changes(), std::vector<string>({"A dir/mine"}));
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(two_->fs().GetAttr(dir)->st_mode & 07777, 0711U);
}

TEST_F(FollowTest, ADirectoryThatIsGoneAndEmpty) {
  ASSERT_TRUE(two_->fs().MakeDirectory({}, kRootIno, "made", 0755));
  EXPECT_EQ(two_->Commit(), 0U);
  const Ino made = two_->Find("made");
  ASSERT_TRUE(two_->fs().MakeDirectory({}, made, "below", 0755));
  ASSERT_TRUE(two_->fs().Rename({}, made, "below", kRootIno, "moved",
                                RenameMode::kReplace));
  ASSERT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(two_->Changes(), std::vector<string>({"A moved"}));
  EXPECT_EQ(two_->Find("made"), kNoIno);
}

TEST_F(FollowTest, WhatWasChangedHasItsNameAfterARollback) {
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("same"), {.mode = 0600}));
  ASSERT_TRUE(two_->workspace().MakeSavepoint("changed"));
  Link(*two_, "same", "h");
  Move(*one_, "removed", "same");
  OthersCommit();
  Reopen();
  two_->Read("same");
  ASSERT_TRUE(two_->workspace().Rollback("changed"));
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Read("same"), "same");
    EXPECT_EQ(two_->fs().GetAttr(two_->Find("same"))->st_mode & 07777, 0600U);
  }
}

TEST_F(FollowTest, AttributesOfAFileThatTheyMovedAreItsOwn) {
  const string root = directory_.path();
  const auto set = [&](const string& name, const string& value) {
    const string path = root + "/" + name;
    ASSERT_EQ(::setxattr(path.c_str(), "user.k", value.data(), value.size(), 0),
              0);
  };
  set("same", "ours");
  set("removed", "others");
  two_->Write("same", "mine");
  Move(*one_, "same", "moved");
  Move(*one_, "removed", "same");
  OthersCommit();
  const auto value = two_->fs().GetXattr(two_->Find("same"), "user.k");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, "ours");
  Move(*one_, "same", "gone");
  OthersCommit();
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  string there(4, '\0');
  const string path = root + "/same";
  EXPECT_EQ(::getxattr(path.c_str(), "user.k", there.data(), there.size()), 4);
  EXPECT_EQ(there, "ours");
}

TEST_F(FollowTest, ADiffSinceASavepointOfAFileThatTheyReplaced) {
  const Ino same = two_->Find("same");
  ASSERT_TRUE(two_->fs().Write({}, same, 1, AsBytes(string("x")), {}));
  ASSERT_TRUE(two_->workspace().MakeSavepoint("before"));
  ASSERT_TRUE(two_->fs().Write({}, same, 2, AsBytes(string("y")), {}));
  two_->Write("removed", "ours");
  std::filesystem::remove(directory_.path() + "/same");
  base_.File("same", "another");
  EXPECT_EQ(two_->ChangesSince("before"),
            (std::vector<string>{"M removed", "M same"}));
}

TEST_F(FollowTest, AFileInThePlaceOfADirectoryThatIsBack) {
  ASSERT_TRUE(two_->fs().MakeDirectory({}, kRootIno, "d", 0755));
  EXPECT_EQ(two_->Commit(), 0U);
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, kRootIno, "d"));
  two_->Write("d", "a file");
  EXPECT_EQ(two_->Commit(), 0U);
  two_->Write("d", "changed");
  ASSERT_TRUE(two_->workspace().Undo(""));
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "d"));
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(FollowTest, AFileThatGotANameOfOthersHasThatWhenItLosesIt) {
  ASSERT_NE(two_->Find("link"), kNoIno);
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "file"));
  Move(*two_, "link", "ours");
  Link(*one_, "file", "third");
  OthersCommit();
  ASSERT_EQ(two_->Find("third"), two_->Find("ours"));
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "third"));
  EXPECT_EQ(two_->fs().GetAttr(two_->Find("ours"))->st_nlink, 1U);
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(FollowTest, AFileThatGotANameOfOthersHasTwoOnceThatWasMoved) {
  two_->Find("removed");
  Move(*two_, "same", "removed", RenameMode::kExchange);
  Link(*one_, "same", "third");
  OthersCommit();
  ASSERT_EQ(two_->Find("third"), two_->Find("removed"));
  Move(*two_, "third", "fourth");
  EXPECT_EQ(two_->fs().GetAttr(two_->Find("removed"))->st_nlink, 2U);
}

TEST_F(FollowTest, WhatTheyDeletedIsMadeAgainByAllItsNames) {
  two_->Write("dir/sub/deep", "mine");
  const Ino sub = two_->Find("dir/sub");
  ASSERT_TRUE(two_->fs().Link({}, two_->Find("dir/sub/deep"), sub, "g"));
  ASSERT_TRUE(
      two_->fs().Rename({}, sub, "g", kRootIno, "b", RenameMode::kReplace));
  one_->Find("dir/sub/deep");
  ASSERT_TRUE(one_->fs().Unlink({}, one_->Find("dir/sub"), "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, one_->Find("dir"), "sub"));
  OthersCommit();
  EXPECT_EQ(two_->Changes(),
            (std::vector<string>{"A b", "A dir/sub", "A dir/sub/deep"}));
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("b"), "mine");
  EXPECT_EQ(base_.Read("dir/sub/deep"), "mine");
  EXPECT_EQ(NumberInBase("b"), NumberInBase("dir/sub/deep"));
}

TEST_F(FollowTest, AFileOfSeveralNamesIsReadByTheOneThatTheyLeft) {
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("file"), {.mode = 0600}));
  ASSERT_NE(two_->Find("link"), kNoIno);
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("file"),
                                 {.mtime = Timestamp{1200000000, 0}}));
  Move(*one_, "same", "file", RenameMode::kExchange);
  OthersCommit();
  EXPECT_EQ(two_->Read("file"), "old");
  EXPECT_EQ(two_->Read("link"), "old");
  EXPECT_EQ(two_->Commit(), 1U);
}

TEST_F(FollowTest, WhatTheyPatchInPlaceStaysWhatItWasUnderOurs) {
  const auto write = [](Transaction& by, const string& name, uint64_t offset) {
    EXPECT_TRUE(by.fs().Write({}, by.Find(name), offset, AsBytes("+"), {}));
  };
  write(*two_, "link", 4);
  write(*one_, "file", 0);
  OthersCommit();
  ASSERT_EQ(base_.Read("link"), "+ld");
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    for (const string name : {"file", "link"}) {
      EXPECT_EQ(two_->Read(name), string("old\0+", 5)) << name;
    }
  }
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("link"), {.size = 0}));
  OthersCommit();
  ASSERT_EQ(base_.Read("link"), "");
  EXPECT_EQ(two_->Read("link"), string("old\0+", 5));
  EXPECT_EQ(two_->fs().Seek(two_->Find("link"), 0, SEEK_DATA).value_or(9), 0U);
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("file"), string("old\0+", 5));
  EXPECT_EQ(NumberInBase("file"), NumberInBase("link"));
}

/// A file that both change in part, and of which there is no pre-image.
class OverwrittenTest : public FollowTest {
 protected:
  static constexpr uint64_t kSize = 300'000;

  void SetUp() override {
    FollowTest::SetUp();
    base_.File("big", string(kSize, 'o'));
    base_.HardLink("big", "big too");
    base_.SetTimes();
  }
  static void WriteAt(Transaction& by, const string& name, uint64_t offset,
                      const string& text) {
    EXPECT_TRUE(by.fs().Write({}, by.Find(name), offset, AsBytes(text), {}));
  }
  static string ReadAll(Transaction& by, Ino ino) {
    const auto st = by.fs().GetAttr(ino);
    if (!st) return "error";
    string text(static_cast<size_t>(st->st_size), '\0');
    const auto size =
        by.fs().Read(ino, 0, std::as_writable_bytes(std::span(text)));
    if (!size) return "error " + std::to_string(size.error().code);
    text.resize(*size);
    return text;
  }
  /// What it has besides the letter o, each as "OFFSET:BYTE", and its size if
  /// that is another.
  static string Marks(const string& text) {
    string marks;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == 'o') continue;
      marks += std::to_string(i) + ":" + text[i] + " ";
      if (marks.size() > 100) return marks + "...";
    }
    return text.size() == kSize ? marks
                                : marks + "size " + std::to_string(text.size());
  }
  string Seen(const string& name) {
    return Marks(ReadAll(*two_, two_->Find(name)));
  }
  /// Also after a resume.
  void ExpectSeen(const string& marks) {
    for (const bool reopens : {false, true}) {
      if (reopens) Reopen();
      EXPECT_EQ(Seen("big"), marks);
      EXPECT_EQ(Seen("big too"), marks);
    }
  }
  /// Takes the newest commit, or undo, of the other back.
  void OthersUndo(const string& wanted = "") {
    const auto report = one_->workspace().Undo(wanted);
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->conflicts.empty());
    undo_ = report->id;
    two_->Refresh();
  }

  /// Looks at each crash point of this process.
  class Looking {
   public:
    explicit Looking(std::function<void()> look) {
      at_point = std::move(look);
      SetCrashHook([] { at_point(); });
    }
    ~Looking() { SetCrashHook(nullptr); }
    Looking(const Looking&) = delete;
    Looking& operator=(const Looking&) = delete;

   private:
    static inline std::function<void()> at_point;
  };

  static constexpr const char* kOurs = "200000:+ ";
  string undo_;  ///< id of the last one
  Ino held_ = kNoIno;
  string seen_ = kOurs;
  int looks_ = 0;
};

TEST_F(OverwrittenTest, IsWhatItWasUnderOursWhateverTheyDo) {
  WriteAt(*two_, "big too", 200'000, "+");
  WriteAt(*one_, "big", 0, "1");
  OthersCommit();
  ASSERT_EQ(base_.Read("big too").substr(0, 2), "1o");
  ExpectSeen(kOurs);
  WriteAt(*one_, "big", 0, "22");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"), {.size = 5}));
  OthersCommit();
  ASSERT_EQ(base_.Read("big"), "22ooo");
  ExpectSeen(kOurs);
  EXPECT_EQ(two_->fs().Seek(two_->Find("big"), 0, SEEK_DATA).value_or(9), 0U);
  WriteAt(*one_, "big", 100'000, "3");
  OthersCommit();
  ExpectSeen(kOurs);
  OthersUndo();
  ASSERT_EQ(base_.Read("big"), "22ooo");
  ExpectSeen(kOurs);
  OthersUndo(undo_);
  ASSERT_EQ(base_.Read("big").size(), 100'001U);
  ExpectSeen(kOurs);
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(Marks(base_.Read("big")), kOurs);
  EXPECT_EQ(NumberInBase("big"), NumberInBase("big too"));
}

TEST_F(OverwrittenTest, IsWhatTheyHadMadeOfItWhenItWasChanged) {
  WriteAt(*one_, "big", 0, "1");
  OthersCommit();
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  const string ours = "0:1 200000:+ ";
  ExpectSeen(ours);
  WriteAt(*one_, "big", 0, "2");
  OthersCommit();
  ExpectSeen(ours);
  OthersUndo();
  ExpectSeen(ours);
  OthersUndo();
  ASSERT_EQ(base_.Read("big")[0], 'o');
  ExpectSeen(ours);
  const string first_undone = undo_;
  WriteAt(*one_, "big", 10, "3");
  OthersCommit();
  ExpectSeen(ours);
  OthersUndo();
  ExpectSeen(ours);
  OthersUndo(first_undone);
  ASSERT_EQ(base_.Read("big")[0], '1');
  ExpectSeen(ours);
}

TEST_F(OverwrittenTest, IsWhatItWasAtEachStepOfACommitAndOfAnUndo) {
  WriteAt(*two_, "big", 200'000, "+");
  held_ = two_->Find("big");
  WriteAt(*one_, "big", 0, "1");
  WriteAt(*one_, "big", 200'001, string(90'000, '1'));
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"), {.size = 295'000}));
  EXPECT_EQ(one_->Commit(), 0U);
  const auto look = [this] {
    looks_ += 1;
    if (seen_ == kOurs) seen_ = Marks(ReadAll(*two_, held_));
  };
  const Looking looking(look);
  EXPECT_TRUE(one_->workspace().Undo(""));
  EXPECT_EQ(seen_, kOurs);
  WriteAt(*one_, "big", 10, "2");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"), {.size = 200'000}));
  EXPECT_EQ(one_->Commit(), 0U);
  EXPECT_EQ(seen_, kOurs);
  const auto undo = one_->workspace().Undo("");
  ASSERT_TRUE(undo);
  EXPECT_TRUE(one_->workspace().Undo(undo->id));
  EXPECT_EQ(seen_, kOurs);
  EXPECT_GE(looks_, 60);
}

TEST_F(OverwrittenTest, IsWhatItWasUnderAnotherModeOrName) {
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("big"), {.mode = 0600}));
  two_->Find("big too");
  WriteAt(*one_, "big", 7, "1");
  OthersCommit();
  ExpectSeen("");
  two_->Find("same");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"), {.size = 3}));
  OthersCommit();
  ExpectSeen("");
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("big"), "ooo");
}

TEST_F(OverwrittenTest, IsWhatItWasForWhoHasItOpenAndDeletedIt) {
  const Ino held = two_->Find("big");
  two_->Find("big too");
  for (const string name : {"big", "big too"}) {
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, name));
  }
  WriteAt(*one_, "big", 7, "1");
  OthersCommit();
  EXPECT_EQ(Marks(ReadAll(*two_, held)), "");
}

TEST_F(OverwrittenTest, IsThereWhatIsUnchangedHere) {
  ASSERT_EQ(Seen("big"), "");
  WriteAt(*one_, "big", 7, "1");
  OthersCommit();
  ExpectSeen("7:1 ");
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("big"), {.mode = 0600}));
  ExpectSeen("7:1 ");
}

TEST_F(OverwrittenTest, IsWhatItWasWhenTheySetTheTimeBack) {
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  struct stat st{};
  ASSERT_EQ(::stat((directory_.path() + "/big").c_str(), &st), 0);
  WriteAt(*one_, "big", 0, "1");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp::From(st.st_mtim)}));
  OthersCommit();
  ExpectSeen(kOurs);
}

TEST_F(OverwrittenTest, IsWhatItWasWhenTheyUndoWhatWeSawAndWhatWasBeforeIt) {
  WriteAt(*one_, "big", 0, "1");
  OthersCommit();
  WriteAt(*one_, "big", 10, "2");
  OthersCommit();
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  const string ours = "0:1 10:2 200000:+ ";
  OthersUndo();
  ExpectSeen(ours);
  OthersUndo();
  ASSERT_EQ(Marks(base_.Read("big")), "");
  ExpectSeen(ours);
}

TEST_F(OverwrittenTest, IsWhatItWasWhenTheyComeToItsSizeAndTimeAgain) {
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  struct stat st{};
  ASSERT_EQ(::stat((directory_.path() + "/big").c_str(), &st), 0);
  WriteAt(*one_, "big", 0, "1");
  OthersCommit();
  WriteAt(*one_, "big", 1, "2");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp::From(st.st_mtim)}));
  OthersCommit();
  ExpectSeen(kOurs);
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(Marks(base_.Read("big")), kOurs);
}

TEST_F(OverwrittenTest, IsNoMixtureWhenTheHistoryOfWhatTheyDidIsGone) {
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  WriteAt(*one_, "big", 0, "1");
  OthersCommit();
  WriteAt(*one_, "big", 10, "2");
  OthersCommit();
  ExpectSeen(kOurs);
  ASSERT_TRUE(one_->workspace().CollectGarbage({.commits = 1}));
  EXPECT_EQ(two_->Read("big"), "error " + std::to_string(ESTALE));
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 1U);
  EXPECT_EQ(Marks(base_.Read("big")), "0:1 10:2 ");
  EXPECT_EQ(two_->Commit(OnConflict::kTheirs), 0U);
}

TEST_F(OverwrittenTest, IsWhatTheyMakeOfItWhenItWasChangedInTheMiddleOfThat) {
  WriteAt(*one_, "big", 0, "1");
  WriteAt(*one_, "big", kSize, "22");
  const auto look = [this] {
    struct stat st{};
    const bool written =
        ::stat((directory_.path() + "/big").c_str(), &st) == 0 &&
        static_cast<uint64_t>(st.st_size) == kSize + 2;
    if (!written || looks_++ > 0) return;
    WriteAt(*two_, "big", 200'000, "+");
  };
  {
    const Looking looking(look);
    EXPECT_EQ(one_->Commit(), 0U);
  }
  ASSERT_GT(looks_, 0);
  two_->Refresh();
  two_->Find("big too");
  ExpectSeen("0:1 200000:+ 300000:2 300001:2 size 300002");
}

TEST_F(OverwrittenTest, IsWhatTheyMadeOfItForWhoChangedItBeforeTheyWereDone) {
  WriteAt(*one_, "big", 0, "1");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp{1300000000, 0}}));
  const auto look = [this] {
    struct stat st{};
    const string path = directory_.path() + "/big";
    const bool done =
        ::stat(path.c_str(), &st) == 0 && st.st_mtim.tv_sec == 1300000000;
    if (!done || looks_++ > 0) return;
    WriteAt(*two_, "big", 200'000, "+");
    // As a recovery does, which sets its attributes once more.
    EXPECT_EQ(::chmod(path.c_str(), st.st_mode & 07777), 0);
  };
  {
    const Looking looking(look);
    EXPECT_EQ(one_->Commit(), 0U);
  }
  ASSERT_GT(looks_, 0);
  two_->Refresh();
  two_->Find("big too");
  ExpectSeen("0:1 200000:+ ");
}

TEST_F(OverwrittenTest, IsWhatTheyMakeOfItAsLongAsWeOnlyDeletedAName) {
  const auto delete_name = [this] {
    two_->Find("big");
    two_->Find("big too");
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "big too"));
  };
  delete_name();
  WriteAt(*one_, "big", 0, "1");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp{1200000000, 0}}));
  OthersCommit();
  for (const string added : {"", "200000:+ "}) {
    if (!added.empty()) WriteAt(*two_, "big", 200'000, "+");
    EXPECT_EQ(Seen("big"), "0:1 " + added);
    Reopen();
    EXPECT_EQ(Seen("big"), "0:1 " + added);
  }
  two_->Discard();
  delete_name();
  OthersUndo();
  for (const string seen : {"", kOurs}) {
    if (!seen.empty()) WriteAt(*two_, "big", 200'000, "+");
    EXPECT_EQ(Seen("big"), seen);
    Reopen();
    EXPECT_EQ(Seen("big"), seen);
  }
}

TEST_F(OverwrittenTest, IsWhatItWasWithATimeThatIsStillToCome) {
  const timespec tomorrow{.tv_sec = ::time(nullptr) + 86400, .tv_nsec = 0};
  const timespec times[2] = {tomorrow, tomorrow};
  const string path = directory_.path() + "/big";
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  WriteAt(*two_, "big", 200'000, "+");
  two_->Find("big too");
  WriteAt(*one_, "big", 0, "1");
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp::From(tomorrow)}));
  OthersCommit();
  ExpectSeen(kOurs);
}

TEST_F(OverwrittenTest, IsThereWhateverHistoryOfOtherFilesIsGone) {
  const auto others_give_up_some = [this](const string& content) {
    one_->Write("same", content);
    OthersCommit();
    one_->Write("same", "last");
    OthersCommit();
    ASSERT_TRUE(one_->workspace().CollectGarbage({.commits = 1}));
  };
  const auto change_mode = [this] {
    ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("big"), {.mode = 0600}));
    two_->Find("big too");
  };
  others_give_up_some("before it began");
  two_->Write("removed", "the next one begins");
  EXPECT_EQ(two_->Commit(), 0U);
  one_->Refresh();
  change_mode();
  const string path = directory_.path() + "/big";
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0), 0);
  ExpectSeen("");
  two_->Discard();
  change_mode();
  one_->Write("same", "since it began");
  OthersCommit();
  ASSERT_TRUE(one_->fs().SetAttr({}, one_->Find("big"),
                                 {.mtime = Timestamp{1200000000, 0}}));
  OthersCommit();
  ASSERT_TRUE(one_->workspace().CollectGarbage({.commits = 1}));
  ExpectSeen("");
}

TEST_F(OverwrittenTest, IsThereWhenAnUndoMovedItAndSetItsTime) {
  base_.File("single", string(kSize, 'o'));
  two_->Find("single");
  Move(*two_, "single", "moved");
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("moved"),
                                 {.mtime = Timestamp{1200000000, 0}}));
  EXPECT_EQ(two_->Commit(), 0U);
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("moved"), {.mode = 0600}));
  ASSERT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(Seen("moved"), "");
}

TEST_F(OverwrittenTest, IsFoundWhereTheyMovedItBeforeTheyWroteToIt) {
  ASSERT_TRUE(two_->fs().SetAttr({}, two_->Find("big"), {.mode = 0600}));
  WriteAt(*two_, "big", 200'000, "+");
  Move(*one_, "big", "moved");
  WriteAt(*one_, "moved", 0, "1");
  ASSERT_NE(one_->Find("big too"), kNoIno);
  Move(*one_, "big too", "moved too");
  OthersCommit();
  EXPECT_EQ(Seen("moved"), kOurs);
  Reopen();
  EXPECT_EQ(Seen("moved"), kOurs);
  OthersUndo();
  ExpectSeen(kOurs);
}

TEST_F(OverwrittenTest, IsFoundAmongWhatTheyDeletedWhenTheyHadWrittenToIt) {
  WriteAt(*two_, "big", 200'000, "+");
  WriteAt(*one_, "big", 0, "1");
  ASSERT_NE(one_->Find("big too"), kNoIno);
  OthersCommit();
  for (const string name : {"big", "big too"}) {
    ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, name));
  }
  OthersCommit();
  EXPECT_EQ(Seen("big"), kOurs);
  Reopen();
  EXPECT_EQ(Seen("big"), kOurs);
}

TEST_F(OverwrittenTest, IsALargeFileOfOneName) {
  constexpr uint64_t kLarge = 65 << 20;
  const string path = directory_.path() + "/large";
  ASSERT_EQ(::truncate((base_.File("large", "o"), path.c_str()), kLarge), 0);
  WriteAt(*two_, "large", 1, "+");
  WriteAt(*one_, "large", 0, "1");
  WriteAt(*one_, "large", 50'000'000, "1");
  OthersCommit();
  ASSERT_EQ(base_.Read("large").substr(0, 2), string("1\0", 2));
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    const string seen = ReadAll(*two_, two_->Find("large"));
    ASSERT_EQ(seen.size(), kLarge);
    EXPECT_EQ(seen.substr(0, 3), string("o+\0", 3));
    EXPECT_EQ(seen[50'000'000], '\0');
  }
}

TEST_F(FollowTest, ADirectoryThatWeEmptiedAndTheyMovedIsNoChangeOfOneWeRename) {
  base_.File("a/sub/x", "in a");
  base_.File("b/sub/y", "in b");
  base_.File("b/emptied/z", "z");
  base_.SetTimes();
  const Ino a = one_->Find("a");
  for (const string name : {"b/emptied/z", "b/sub/y", "a/sub/x"}) {
    ASSERT_NE(two_->Find(name), kNoIno);
  }
  ASSERT_TRUE(two_->fs().Unlink({}, two_->Find("b/emptied"), "z"));
  one_->Find("b");
  one_->Find("a/sub");
  ASSERT_TRUE(
      one_->fs().Rename({}, kRootIno, "b", a, "sub", RenameMode::kExchange));
  OthersCommit();
  two_->Find("a/sub/sub");
  ASSERT_TRUE(two_->fs().Rename({}, two_->Find("a/sub"), "sub", kRootIno, "b",
                                RenameMode::kExchange));
  EXPECT_EQ(two_->Changes(), (std::vector<string>{"R a/sub/sub", "R b"}));
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_FALSE(base_.Exists("a/sub/sub/emptied"));
}

TEST_F(FollowTest,
       WhatTheyReplacedIsOursThereThoughItsNotedNameWasRenamedHere) {
  two_->Write("link", "mine");
  Move(*two_, "link", "third");
  ASSERT_EQ(two_->Read("file"), "mine");
  one_->Find("file");
  Move(*one_, "same", "file");
  OthersCommit();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Read("file"), "mine");
    EXPECT_EQ(two_->Changes(),
              (std::vector<string>{"M file", "D link", "A third"}));
    EXPECT_TRUE(two_->workspace().FindConflicts());
    EXPECT_EQ(two_->Read("file"), "mine");
    EXPECT_EQ(two_->Read("third"), "mine");
  }
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "third"));
  EXPECT_EQ(two_->Read("file"), "mine");
  EXPECT_EQ(two_->Commit(), 1U);
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("file"), "mine");
  EXPECT_FALSE(base_.Exists("link"));
}

TEST_F(FollowTest, AFileThatWeDeletedAndToWhichTheyGaveAnotherName) {
  two_->Find("dir/sub/deep");
  ASSERT_TRUE(two_->fs().Unlink({}, two_->Find("dir/sub"), "deep"));
  Link(*one_, "dir/sub/deep", "third");
  OthersCommit();
  two_->Write("third", "mine");
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(FollowTest, AFileOfWhichEachSideDeletedWhatTheOtherLeft) {
  Link(*one_, "file", "third");
  OthersCommit();
  const Ino held = two_->Find("third");
  ASSERT_NE(held, kNoIno);
  for (const string name : {"file", "link"}) {
    two_->Find(name);
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, name));
  }
  one_->Find("third");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "third"));
  OthersCommit();
  // No diff would show it.
  EXPECT_EQ(two_->fs().Write({}, held, 0, AsBytes("x"), {}).error().code,
            ESTALE);
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Find("third"), kNoIno);
    EXPECT_EQ(two_->Changes(), (std::vector<string>{"D file", "D link"}));
  }
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_FALSE(base_.Exists("file"));
}

TEST_F(FollowTest, ARollbackToBeforeEachSideDeletedWhatTheOtherLeft) {
  Link(*one_, "file", "third");
  OthersCommit();
  ASSERT_TRUE(two_->workspace().MakeSavepoint("before"));
  for (const string name : {"file", "link", "third"}) {
    ASSERT_NE(two_->Find(name), kNoIno);
  }
  for (const string name : {"file", "link"}) {
    ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, name));
  }
  ASSERT_TRUE(two_->workspace().MakeSavepoint("ours"));
  one_->Find("third");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "third"));
  OthersCommit();
  const std::vector<string> ours = {"D file", "D link"};
  for (const bool rolls_back : {false, true}) {
    if (rolls_back) {
      ASSERT_TRUE(two_->workspace().Rollback("ours"));
    }
    EXPECT_EQ(two_->Find("third"), kNoIno);
    EXPECT_EQ(two_->ChangesSince("ours"), std::vector<string>());
    EXPECT_EQ(two_->ChangesSince("before"), ours);
    EXPECT_EQ(two_->Changes(), ours);
    EXPECT_EQ(FindProblems(directory_.path()), "");
  }
  ASSERT_TRUE(two_->workspace().Rollback("before"));
  EXPECT_EQ(two_->Find("third"), kNoIno);
  EXPECT_EQ(two_->Read("file"), "old");
  two_->Write("link", "mine");
  EXPECT_EQ(two_->Read("file"), "mine");
  EXPECT_EQ(two_->Changes(), (std::vector<string>{"M file", "M link"}));
  EXPECT_EQ(two_->Commit(), 0U);
  EXPECT_EQ(base_.Read("file"), "mine");
}

TEST_F(FollowTest, ADirectoryIsNotKeptForAFileThatTheyMovedWithIt) {
  Link(*one_, "same", "more");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "more", one_->Find("dir/sub"),
                                "more", RenameMode::kReplace));
  OthersCommit();
  ASSERT_TRUE(two_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_EQ(two_->Read("dir/sub/more"), "same");
  Move(*one_, "dir", "moved");
  OthersCommit();
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    EXPECT_EQ(two_->Find("dir"), kNoIno);
    EXPECT_EQ(two_->Read("moved/sub/more"), "same");
    EXPECT_EQ(two_->Changes(), std::vector<string>({"D same"}));
  }
  EXPECT_EQ(two_->Commit(), 0U);
}

TEST_F(FollowTest, ADirectoryThatBothSidesDeleted) {
  two_->Write("dir/sub/own", "mine");
  const auto remove = [](Transaction& by, const string& name) {
    ASSERT_NE(by.Find("dir/sub/" + name), kNoIno);
    const Ino sub = by.Find("dir/sub");
    ASSERT_TRUE(by.fs().Unlink({}, sub, name));
    ASSERT_TRUE(by.fs().RemoveDirectory({}, by.Find("dir"), "sub"));
  };
  remove(*one_, "deep");
  one_->Find("dir");
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, kRootIno, "dir"));
  OthersCommit();
  EXPECT_EQ(two_->Changes(),
            (std::vector<string>{"A dir", "A dir/sub", "A dir/sub/own"}));
  remove(*two_, "own");
  for (const bool reopens : {false, true}) {
    if (reopens) Reopen();
    ExpectNoChange({"dir/sub/own"});
  }
  EXPECT_FALSE(base_.Exists("dir"));
}

TEST_F(FollowTest, AFileThatTheyDeletedIsNoneInADirectoryThatWeDeleted) {
  const Ino sub = two_->Find("dir/sub");
  ASSERT_TRUE(two_->fs().Link({}, two_->Find("dir/sub/deep"), sub, "own"));
  one_->Find("dir/sub/deep");
  ASSERT_TRUE(one_->fs().Unlink({}, one_->Find("dir/sub"), "deep"));
  ASSERT_TRUE(one_->fs().RemoveDirectory({}, one_->Find("dir"), "sub"));
  OthersCommit();
  ASSERT_NE(two_->Find("dir/sub/own"), kNoIno);
  for (const string name : {"own", "deep"}) {
    if (two_->Find("dir/sub/" + name) == kNoIno) continue;
    ASSERT_TRUE(two_->fs().Unlink({}, two_->Find("dir/sub"), name));
  }
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, two_->Find("dir"), "sub"));
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

/// What leads to a changed file is found before the file that was there is.
TEST_F(FollowTest, ADirectoryInThePlaceOfAFileWithAChangedFileInIt) {
  two_->Write("file", "mine");
  two_->Write("other", "other");
  ASSERT_NE(two_->Find("same"), kNoIno);
  Move(*one_, "same", "moved");
  one_->Find("dir");
  Move(*one_, "dir", "same");
  one_->Find("link");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "link"));
  one_->Find("file");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "file", one_->Find("same"), "x",
                                RenameMode::kReplace));
  OthersCommit();
  EXPECT_EQ(two_->Read("same/x"), "mine");
  ASSERT_TRUE(two_->workspace().DiscardPart({"other"}));
  EXPECT_EQ(two_->Read("same/x"), "mine");
  EXPECT_EQ(two_->Read("same/sub/deep"), "deep");
  EXPECT_EQ(two_->Read("moved"), "same");
}

TEST_F(FollowTest, AnUndoBringsBackTimesOfAFileThatWasPatchedAndLostAllNames) {
  const auto time_of = [&](const string& path) {
    struct stat st{};
    EXPECT_EQ(::lstat((directory_.path() + "/" + path).c_str(), &st), 0);
    return Timestamp::From(st.st_mtim);
  };
  const Timestamp before = time_of("file");
  Move(*one_, "link", "same");
  two_->Write("same", "mine");
  OthersCommit();
  EXPECT_TRUE(two_->fs().Write({}, two_->Find("file"), 4, AsBytes("+"), {}));
  two_->Write("new", "new");
  Move(*two_, "new", "file");
  EXPECT_EQ(two_->Commit(OnConflict::kMine), 0U);
  EXPECT_EQ(base_.Read("file"), "new");
  EXPECT_EQ(base_.Read("same"), "mine");
  ASSERT_TRUE(two_->workspace().Undo(""));
  EXPECT_EQ(base_.Read("file"), "old");
  EXPECT_EQ(NumberInBase("file"), NumberInBase("same"));
  EXPECT_EQ(time_of("file"), before);
}

TEST(IsInStateTest, NotOfAFileThatWasMadeSince) {
  TempDir directory;
  BaseTree tree(directory.path());
  tree.File("f", "text");
  auto base =
      BaseDirectory(OpenAt(AT_FDCWD, directory.path(), O_RDONLY | O_DIRECTORY)
                        .value_or(UniqueFd()));
  const auto fd = base.OpenFile("f");
  ASSERT_TRUE(fd);
  struct stat st{};
  ASSERT_EQ(::fstat((*fd)->get(), &st), 0);
  Fingerprint state{.ino = st.st_ino,
                    .size = 4,
                    .mtime = Timestamp::From(st.st_mtim),
                    .ctime = Timestamp::From(st.st_ctim)};
  EXPECT_TRUE(IsInState(base, (*fd)->get(), state));
  state.ctime.sec -= 10;
  EXPECT_FALSE(IsInState(base, (*fd)->get(), state));
}

/// A directory that one of them moves to `name`, and changes the other makes
/// to it there before the move is undone: only the other has it.
class LostDirectoryTest : public RefreshTest {
 protected:
  void SetUp() override {
    base_.Directory("moved", 0755);
    RefreshTest::SetUp();
    ASSERT_TRUE(Move(*one_, "moved", "name"));
    EXPECT_EQ(one_->Commit(), 0U);
    two_->Refresh();
    ASSERT_TRUE(two_->fs().SetXattr({}, two_->Find("name"), "user.k", {}, {}));
    ASSERT_TRUE(one_->workspace().Undo(""));
    two_->Refresh();
    ASSERT_NE(two_->Find("name"), kNoIno);
  }

  static Status Move(Transaction& by, const string& from, const string& to) {
    return by.fs().Rename({}, kRootIno, from, kRootIno, to,
                          RenameMode::kReplace);
  }

  void ExpectSound() {
    two_.reset();
    EXPECT_EQ(FindProblems(directory_.path()), "");
  }
};

TEST_F(LostDirectoryTest, IsNotCountedWhenItIsReplaced) {
  ASSERT_TRUE(Move(*two_, "moved", "name"));
  ExpectSound();
}

TEST_F(LostDirectoryTest, IsNotCountedWhenItMoves) {
  ASSERT_TRUE(Move(*two_, "name", "other"));
  ExpectSound();
}

TEST_F(LostDirectoryTest, IsNotCountedWhenItGoes) {
  ASSERT_TRUE(two_->fs().RemoveDirectory({}, kRootIno, "name"));
  ExpectSound();
}

TEST_F(LostDirectoryTest, IsNotCountedInAnExchange) {
  const Ino dir = two_->Find("dir");
  ASSERT_TRUE(two_->fs().Rename({}, kRootIno, "name", dir, "sub",
                                RenameMode::kExchange));
  ExpectSound();
}

TEST_F(RefreshTest, CountsSubdirectoriesWhenAnotherMadeMoreOfThem) {
  const Ino dir = two_->Find("dir");
  ASSERT_TRUE(two_->fs().SetAttr({}, dir, {.mode = 0700}));
  const std::array names{"a", "b", "c"};
  for (const char* name : names) {
    ASSERT_TRUE(one_->fs().MakeDirectory({}, one_->Find("dir"), name, 0755));
  }
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  for (const char* name : names) {
    ASSERT_TRUE(two_->fs().RemoveDirectory({}, dir, name));
  }
  for (const char* name : names) {
    ASSERT_TRUE(two_->fs().MakeDirectory({}, dir, name, 0755));
    ASSERT_TRUE(two_->fs().MakeDirectory({}, dir, name + string("2"), 0755));
  }
  two_.reset();
  EXPECT_EQ(FindProblems(directory_.path()), "");
}

TEST_F(RefreshTest, WhatTakesThePlaceOfAnotherIsMissingWhereItWas) {
  base_.File("other", "other");
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "other", kRootIno, "same",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Changes(), (std::vector<string>{"D other", "M same"}));
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "same", kRootIno, "new",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Changes(), (std::vector<string>{"R new", "D same"}));
  const auto discarded = one_->workspace().Discard();
  ASSERT_TRUE(discarded);
  EXPECT_EQ(discarded->changes, 2U);
}

TEST_F(RefreshTest, ADirectoryInThePlaceOfAnotherIsRenamed) {
  ASSERT_TRUE(one_->fs().MakeDirectory({}, kRootIno, "empty", 0755));
  EXPECT_EQ(one_->Commit(), 0U);
  ASSERT_TRUE(one_->fs().Rename({}, kRootIno, "dir", kRootIno, "empty",
                                RenameMode::kReplace));
  EXPECT_EQ(one_->Changes(), (std::vector<string>{"R empty"}));
  const auto discarded = one_->workspace().Discard();
  ASSERT_TRUE(discarded);
  EXPECT_EQ(discarded->changes, 1U);
}

TEST_F(RefreshTest, FollowsAChangeOfType) {
  const Ino file = two_->Find("same");
  const Ino dir = two_->Find("dir/sub");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  ASSERT_TRUE(one_->fs().MakeDirectory({}, kRootIno, "same", 0755));
  one_->Write("same/inside", "inside");
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  EXPECT_NE(two_->Find("same"), file);
  EXPECT_EQ(two_->Read("same/inside"), "inside");
  EXPECT_EQ(two_->Find("dir/sub"), dir);
}

TEST_F(RefreshTest, LeavesWhatItDroppedAloneAtTheNextEnd) {
  const Ino file = two_->Find("same");
  ASSERT_TRUE(one_->fs().Unlink({}, kRootIno, "same"));
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  two_->Write("mine", "mine");
  EXPECT_EQ(two_->Commit(), 0U);
  one_->Refresh();
  one_->Write("same", "again");
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  ASSERT_TRUE(two_->workspace().Discard());
  EXPECT_NE(two_->Find("same"), file);
  EXPECT_EQ(two_->Read("same"), "again");
  EXPECT_EQ(two_->fs().GetAttr(file)->st_nlink, 0U);
}

TEST_F(RefreshTest, ShowsWhatAnUndoOfAnotherBroughtBack) {
  one_->Write("same", "new");
  EXPECT_EQ(one_->Commit(), 0U);
  two_->Refresh();
  const Ino file = two_->Find("same");
  EXPECT_EQ(one_->Read("same"), "new");
  const auto undone = two_->workspace().Undo("one");
  ASSERT_TRUE(undone) << undone.error().ToString();
  EXPECT_EQ(two_->Read(file), "same");
  one_->Refresh();
  EXPECT_EQ(one_->Read("same"), "same");
}

string crash_intent;

/// A commit whose process dies when it has passed its point of no return.
/// It begins when the other end of `go` is closed.
pid_t CommitAndDie(const string& workspace, std::array<int, 2> go) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::close(go[1]);
  char byte = 0;
  if (::read(go[0], &byte, 1) != 0) ::_exit(2);
  Transaction dying(workspace, "dying");
  dying.Write("same", "its");
  crash_intent = workspace + "/.txfs/intent";
  SetCrashHook([] {
    if (::access(crash_intent.c_str(), F_OK) == 0) ::_exit(0);
  });
  dying.Commit();
  ::_exit(1);
}

class DeadCommitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_.File("same", "same");
    base_.File("other", "other");
    std::array<int, 2> go{};
    ASSERT_EQ(::pipe2(go.data(), O_CLOEXEC), 0);
    // Before there are threads.
    const pid_t pid = CommitAndDie(directory_.path(), go);
    ASSERT_GT(pid, 0);
    ::close(go[0]);
    left_ = std::make_unique<Transaction>(directory_.path(), "left");
    file_ = left_->Find("same");
    EXPECT_EQ(left_->Read(file_), "same");
    ::close(go[1]);
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
  }

  TempDir directory_;
  BaseTree base_{directory_.path()};
  std::unique_ptr<Transaction> left_;
  Ino file_ = kNoIno;
};

TEST_F(DeadCommitTest, IsFinishedAndShownByWhoeverFindsIt) {
  const auto first = left_->workspace().Recover();
  ASSERT_TRUE(first) << first.error().ToString();
  EXPECT_NE(*first, "");
  EXPECT_EQ(left_->Read(file_), "its");
  EXPECT_EQ(left_->workspace().Recover().value(), "");
}

TEST_F(DeadCommitTest, IsFinishedBeforeTheNextCommit) {
  left_->Write("other", "mine");
  EXPECT_EQ(left_->Commit(), 0U);
  EXPECT_EQ(left_->Read(file_), "its");
  EXPECT_EQ(left_->Read("other"), "mine");
  EXPECT_NE(left_->workspace().Recover().value(), "");
}

TEST_F(DeadCommitTest, IsFinishedBeforeAnUndo) {
  const auto undone = left_->workspace().Undo("");
  ASSERT_TRUE(undone) << undone.error().ToString();
  EXPECT_EQ(left_->Read(file_), "same");
}

TEST_F(DeadCommitTest, IsFoundWhenTheNextTransactionBegins) {
  const Transaction next(directory_.path(), "next");
  EXPECT_NE(next.workspace().Recover().value(), "");
  EXPECT_EQ(left_->workspace().Recover().value(), "");
  left_->Refresh();
  EXPECT_EQ(left_->Read(file_), "its");
}

}  // namespace
}  // namespace txfs::testing
