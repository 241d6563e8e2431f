#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/planning/resolution.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/lines.h"

namespace txfs {

void PrintTo(const Conflict& conflict, std::ostream* out) {
  *out << conflict.path << ": " << conflict.reason << ", " << conflict.ours
       << (conflict.note.empty() ? "" : ", " + conflict.note);
}

}  // namespace txfs

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// What is at a path: nothing, or content; "/" is a directory.
using Expectation = std::pair<string, std::optional<string>>;
const std::nullopt_t kNone = std::nullopt;

/// One way in which two sides get in each other's way.
struct ConflictCase {
  string name;
  std::function<Status(Driver&)> ours, theirs;
  Conflict conflict;
  /// What the base is to have afterwards. None: it must stay a conflict.
  std::optional<vector<Expectation>> mine, others, merged;
};
void PrintTo(const ConflictCase& one, std::ostream* out) { *out << one.name; }

Status Delete(Driver& fs) { return fs.Unlink("f"); }
Status DeleteTree(Driver& fs) { return fs.RemoveRecursively("d"); }
Status Write(Driver& fs) { return fs.WriteFile("f", "written"); }
Status WriteOther(Driver& fs) { return fs.WriteFile("f", "other"); }
Status Append(Driver& fs) { return fs.AppendFile("f", "10\n"); }
Status ChangeHead(Driver& fs) {
  return fs.WriteFile("f", With(kLines, "1\n", "one\n"));
}
Status Chmod(Driver& fs) { return fs.Chmod("f", 0600); }
Status Move(Driver& fs) { return fs.Rename("f", "g", 0); }
Status BecomeDirectory(Driver& fs) {
  TRY(fs.Unlink("f"));
  TRY(fs.Mkdir("f", 0755));
  return fs.WriteFile("f/in", "inside");
}
Status CreateIn(Driver& fs) { return fs.WriteFile("d/n", "new"); }
Status DirectoryBecomesFile(Driver& fs) {
  TRY(fs.RemoveRecursively("d"));
  return fs.WriteFile("d", "file");
}
Status ReplaceByRename(Driver& fs) {
  TRY(fs.WriteFile("tmp", With(kLines, "9\n", "nine\n")));
  return fs.Rename("tmp", "f", 0);
}

const vector<ConflictCase>& Cases() {
  static const vector<ConflictCase> kCases = {
      {.name = "ModifiedAndModified",
       .ours = Write,
       .theirs = WriteOther,
       .conflict = {"f", "changed", "modified", ""},
       .mine = {{{"f", "written"}}},
       .others = {{{"f", "other"}}}},
      {.name = "ModifiedAndDeleted",
       .ours = Write,
       .theirs = Delete,
       .conflict = {"f", "deleted", "modified", ""},
       .mine = {{{"f", "written"}}},
       .others = {{{"f", kNone}}}},
      {.name = "AppendedAndChanged",
       .ours = Append,
       .theirs = ChangeHead,
       .conflict = {"f", "changed", "modified", ""},
       .mine = {{{"f", kLines + "10\n"}}},
       .others = {{{"f", With(kLines, "1\n", "one\n")}}},
       .merged = {{{"f", With(kLines, "1\n", "one\n") + "10\n"}}}},
      {.name = "AppendedAndReplacedByAnotherFile",
       .ours = Append,
       .theirs = ReplaceByRename,
       .conflict = {"f", "changed", "modified", ""},
       .mine = {{{"f", kLines + "10\n"}}},
       .others = {{{"f", With(kLines, "9\n", "nine\n")}}},
       .merged = {{{"f", With(kLines, "9\n", "nine\n") + "10\n"}}}},
      {.name = "HeadChangedAndReplacedByAnotherFile",
       .ours = ChangeHead,
       .theirs = ReplaceByRename,
       .conflict = {"f", "changed", "modified", ""},
       .mine = {{{"f", With(kLines, "1\n", "one\n")}}},
       .others = {{{"f", With(kLines, "9\n", "nine\n")}}},
       .merged = {{{"f",
                    With(With(kLines, "9\n", "nine\n"), "1\n", "one\n")}}}},
      {.name = "AppendedAndDeleted",
       .ours = Append,
       .theirs = Delete,
       .conflict = {"f", "deleted", "modified", ""},
       .mine = {{{"f", kLines + "10\n"}}},
       .others = {{{"f", kNone}}}},
      {.name = "DeletedAndModified",
       .ours = Delete,
       .theirs = WriteOther,
       .conflict = {"f", "changed", "deleted", ""},
       .mine = {{{"f", kNone}}},
       .others = {{{"f", "other"}}}},
      {.name = "BothCreated",
       .ours = [](Driver& fs) { return fs.WriteFile("n", "ours"); },
       .theirs = [](Driver& fs) { return fs.WriteFile("n", "theirs"); },
       .conflict = {"n", "created", "created", ""},
       .mine = {{{"n", "ours"}}},
       .others = {{{"n", "theirs"}}}},
      {.name = "CreatedWhereADirectoryWasCreated",
       .ours = [](Driver& fs) { return fs.WriteFile("n", "ours"); },
       .theirs = [](Driver& fs) { return fs.Mkdir("n", 0700); },
       .conflict = {"n", "created", "created", ""},
       .mine = {{{"n", "ours"}}},
       .others = {{{"n", "/"}}}},
      {.name = "ModifiedAndBecameADirectory",
       .ours = Append,
       .theirs = BecomeDirectory,
       .conflict = {"f", "type changed", "modified", ""},
       .mine = {{{"f", kLines + "10\n"}, {"f/in", kNone}}},
       .others = {{{"f/in", "inside"}}}},
      {.name = "BecameADirectoryAndModified",
       .ours = BecomeDirectory,
       .theirs = WriteOther,
       .conflict = {"f", "changed", "replaced", ""},
       .mine = {{{"f/in", "inside"}}},
       .others = {{{"f", "other"}}}},
      {.name = "CreatedInADirectoryThatBecameAFile",
       .ours = CreateIn,
       .theirs = DirectoryBecomesFile,
       .conflict = {"d", "type changed", "entries changed", ""},
       .mine = {{{"d/n", "new"}, {"d/x", kNone}}},
       .others = {{{"d", "file"}}}},
      {.name = "CreatedInADirectoryThatWasDeleted",
       .ours = CreateIn,
       .theirs = DeleteTree,
       .conflict = {"d", "deleted", "entries changed", ""},
       .mine = {{{"d/n", "new"}, {"d/x", kNone}}},
       .others = {{{"d", kNone}}}},
      {.name = "ModifiedInADirectoryThatBecameAFile",
       .ours = [](Driver& fs) { return fs.AppendFile("d/s/y", "+"); },
       .theirs = DirectoryBecomesFile,
       .conflict = {"d/s/y", "deleted", "modified", ""},
       .mine = {{{"d/s/y", "deeper+"}, {"d/x", kNone}}},
       .others = {{{"d", "file"}}}},
      {.name = "ModifiedInADirectoryThatBecameASymlink",
       .ours = [](Driver& fs) { return fs.AppendFile("d/s/y", "+"); },
       .theirs = [](Driver& fs) -> Status {
         TRY(fs.Rename("d", "moved", 0));
         return fs.Symlink("moved", "d");
       },
       .conflict = {"d/s/y", "deleted", "modified", ""},
       .mine = {{{"d/s/y", "deeper+"}, {"d/x", kNone}, {"moved/x", "deep"}}},
       .others = {{{"d", "moved"}, {"moved/s/y", "deeper"}}}},
      {.name = "ReplacedADirectoryByAFileAndCreatedInIt",
       .ours = DirectoryBecomesFile,
       .theirs = CreateIn,
       .conflict = {"d/n", "created", "deleted", ""},
       .mine = {{{"d", "file"}}},
       .others = {{{"d/n", "new"}, {"d/x", "deep"}}}},
      {.name = "DeletedADirectoryInWhichAFileWasModified",
       .ours = DeleteTree,
       .theirs = [](Driver& fs) { return fs.WriteFile("d/x", "theirs"); },
       .conflict = {"d/x", "changed", "deleted", ""},
       .mine = {{{"d", kNone}}},
       .others = {{{"d/x", "theirs"}}}},
      {.name = "RenamedAndRenamed",
       .ours = Move,
       .theirs = [](Driver& fs) { return fs.Rename("f", "h", 0); },
       .conflict = {"f", "deleted", "renamed", ""},
       .mine = {{{"f", kNone}, {"g", kLines}, {"h", kLines}}},
       .others = {{{"f", kNone}, {"g", kNone}, {"h", kLines}}}},
      {.name = "RenamedToANameThatWasCreated",
       .ours = Move,
       .theirs = [](Driver& fs) { return fs.WriteFile("g", "theirs"); },
       .conflict = {"g", "created", "created", ""},
       .mine = {{{"f", kNone}, {"g", kLines}}},
       .others = {{{"f", kLines}, {"g", "theirs"}}}},
      {.name = "CreatedADirectoryWhereADirectoryWasCreated",
       .ours = [](Driver& fs) -> Status {
         TRY(fs.Mkdir("n", 0755));
         return fs.WriteFile("n/ours", "ours");
       },
       .theirs = [](Driver& fs) -> Status {
         TRY(fs.Mkdir("n", 0755));
         return fs.WriteFile("n/theirs", "theirs");
       },
       .conflict = {"n", "created", "created", ""},
       .mine = {{{"n/ours", "ours"}, {"n/theirs", kNone}}},
       .others = {{{"n/theirs", "theirs"}, {"n/ours", kNone}}}},
      {.name = "DeletedADirectoryInWhichAFileWasCreated",
       .ours = DeleteTree,
       .theirs = CreateIn,
       .conflict = {"d/n", "created", "deleted", ""},
       .mine = {{{"d", kNone}}},
       .others = {{{"d/n", "new"}, {"d/x", "deep"}}}},
      {.name = "ModifiedBelowADirectoryThatWasDeleted",
       .ours = [](Driver& fs) { return fs.AppendFile("d/s/y", "+"); },
       .theirs = DeleteTree,
       .conflict = {"d/s/y", "deleted", "modified", ""},
       .mine = {{{"d/s/y", "deeper+"}, {"d/x", kNone}}},
       .others = {{{"d", kNone}}}},
      {.name = "RenamedAndModified",
       .ours = Move,
       .theirs = WriteOther,
       .conflict = {"f", "changed", "renamed", ""},
       .mine = {{{"g", "other"}, {"f", kNone}}},
       .others = {{{"f", "other"}, {"g", kNone}}},
       .merged = {{{"g", "other"}, {"f", kNone}}}},
      {.name = "RenamedAndDeleted",
       .ours = Move,
       .theirs = Delete,
       .conflict = {"f", "deleted", "renamed", ""},
       .mine = {},
       .others = {{{"f", kNone}, {"g", kNone}}}},
      {.name = "RenamedADirectoryThatWasDeleted",
       .ours = [](Driver& fs) -> Status {
         TRY(fs.Rename("d", "e", 0));
         return fs.WriteFile("e/n", "new");
       },
       .theirs = DeleteTree,
       .conflict = {"d", "deleted", "renamed", ""},
       .mine = {{{"e/n", "new"}, {"d", kNone}}},
       .others = {{{"d", kNone}, {"e", kNone}}}},
      {.name = "AttributesAndContent",
       .ours = Chmod,
       .theirs = WriteOther,
       .conflict = {"f", "changed", "attributes changed", ""},
       .mine = {{{"f", "other"}}},
       .others = {{{"f", "other"}}},
       .merged = {{{"f", "other"}}}},
      {.name = "ContentAndAttributes",
       .ours = Append,
       .theirs = Chmod,
       .conflict = {"f", "attributes changed", "modified", ""},
       .mine = {{{"f", kLines + "10\n"}}},
       .others = {{{"f", kLines}}},
       .merged = {{{"f", kLines + "10\n"}}}},
      {.name = "ReplacedAndModified",
       .ours = ReplaceByRename,
       .theirs = ChangeHead,
       .conflict = {"f", "changed", "replaced", ""},
       .mine = {{{"f", With(kLines, "9\n", "nine\n")}}},
       .others = {{{"f", With(kLines, "1\n", "one\n")}}},
       .merged = {{{"f",
                    With(With(kLines, "9\n", "nine\n"), "1\n", "one\n")}}}},
      {.name = "ReplacedAndDeleted",
       .ours = ReplaceByRename,
       .theirs = Delete,
       .conflict = {"f", "deleted", "replaced", ""},
       .mine = {{{"f", With(kLines, "9\n", "nine\n")}}},
       .others = {{{"f", kNone}}}},
      {.name = "SymlinkMovedAndPointedElsewhere",
       .ours = [](Driver& fs) { return fs.Rename("l", "m", 0); },
       .theirs = [](Driver& fs) -> Status {
         TRY(fs.Unlink("l"));
         return fs.Symlink("elsewhere", "l");
       },
       .conflict = {"l", "changed", "renamed", ""},
       .mine = {{{"m", "elsewhere"}, {"l", kNone}}},
       .others = {{{"l", "elsewhere"}, {"m", kNone}}},
       .merged = {{{"m", "elsewhere"}, {"l", kNone}}}},
  };
  return kCases;
}

/// Merges line by line; good enough where both have as many lines or more.
Result<std::optional<MergedText>> MergeLines(const MergeInput& input) {
  MergedText merged;
  const auto line = [](std::string_view& rest) {
    const size_t end = std::min(rest.find('\n'), rest.size() - 1);
    const std::string_view first = rest.substr(0, rest.empty() ? 0 : end + 1);
    rest.remove_prefix(first.size());
    return first;
  };
  std::string_view was = input.ancestor, ours = input.ours,
                   theirs = input.theirs;
  while (!ours.empty() || !theirs.empty()) {
    const std::string_view a = line(was), b = line(ours), c = line(theirs);
    if (a != b && a != c && b != c) {
      merged.clean = false;
      merged.content += "<<<\n" + string(b) + "===\n" + string(c) + ">>>\n";
    } else {
      merged.content += a == b ? c : b;
    }
  }
  return std::optional(std::move(merged));
}

class ConflictTest : public ::testing::Test {
 protected:
  ConflictTest() : base_(scratch_.path() + "/base"), plain_(base_.root()) {
    SetUpBase();
  }
  ~ConflictTest() override {
    driver_.reset();
    EXPECT_EQ(FindProblems(base_.root()), "");
  }

  void SetUpBase() {
    std::filesystem::remove_all(base_.root());
    base_.Directory("");
    base_.File("f", kLines);
    base_.File("d/x", "deep");
    base_.File("d/s/y", "deeper");
    base_.File("other", "old");
    base_.Symlink("f", "l");
    base_.SetTimes();
  }

  CoreDriver& fs() {
    if (!driver_) {
      auto driver = CoreDriver::Start(base_.root(), {.keep_lookups = true});
      EXPECT_OK(driver);
      driver_ = std::move(*driver);
    }
    return static_cast<CoreDriver&>(*driver_);
  }
  Workspace& workspace() { return fs().workspace(); }

  TreeView Base() {
    auto view = ViewTree(plain_);
    EXPECT_OK(view);
    return std::move(view).value_or(TreeView{});
  }
  TreeView Mount() {
    auto view = ViewTree(fs());
    EXPECT_OK(view);
    return std::move(view).value_or(TreeView{});
  }
  static CommitOptions Options(OnConflict on_conflict, bool markers = false) {
    return {.message = "test",
            .conflicts = {.on_conflict = on_conflict,
                          .merge = MergeLines,
                          .markers = markers}};
  }
  CommitReport Commit(OnConflict on_conflict, bool markers = false) {
    auto report = workspace().Commit(Options(on_conflict, markers));
    EXPECT_OK(report);
    return std::move(report).value_or(CommitReport{});
  }
  vector<Conflict> Conflicts() {
    auto conflicts = workspace().FindConflicts();
    EXPECT_OK(conflicts);
    return std::move(conflicts).value_or(vector<Conflict>{});
  }
  void ExpectInBase(const vector<Expectation>& expectations) {
    const TreeView view = Base();
    for (const auto& [path, content] : expectations) {
      const auto found = view.find(path);
      EXPECT_EQ(found != view.end(), content.has_value()) << path;
      if (found == view.end() || !content) continue;
      if (*content == "/") {
        EXPECT_TRUE(S_ISDIR(found->second.mode)) << path;
      } else {
        EXPECT_EQ(found->second.content, *content) << path;
      }
    }
    // Whatever was committed, the mount shows it.
    EXPECT_EQ(Compare(view, Mount(), {.ino = false, .ctime = false}), "");
  }

  TempDir scratch_;
  BaseTree base_;
  PosixDriver plain_;
  std::unique_ptr<Driver> driver_;
};

class ConflictCaseTest : public ConflictTest,
                         public ::testing::WithParamInterface<ConflictCase> {
 protected:
  /// Both sides do what they do, and ours something that is in nobody's way.
  void Collide() {
    Mount();  // what a kernel has seen, it holds
    ASSERT_OK(GetParam().ours(fs()));
    ASSERT_OK(fs().WriteFile("other", "new"));
    ASSERT_OK(GetParam().theirs(plain_));
    theirs_ = Base();
    Conflicts();  // forgets which directories were where
    ASSERT_OK(workspace().Refresh());
    ours_ = ViewTree(fs());
  }
  /// Nothing was committed and nothing is forgotten. (What the base no longer
  /// has, the mount cannot show.)
  void ExpectUntouched() {
    EXPECT_EQ(Compare(theirs_, Base(), {}), "");
    EXPECT_EQ(Conflicts(), vector<Conflict>{GetParam().conflict});
    const auto now = ViewTree(fs());
    ASSERT_EQ(ours_.has_value(), now.has_value());
    if (now) {
      EXPECT_EQ(Compare(*ours_, *now, {}), "");
    }
  }
  void CheckMode(OnConflict mode,
                 const std::optional<vector<Expectation>>& expected) {
    Collide();
    const CommitReport report = Commit(mode);
    if (!expected) {
      ASSERT_EQ(report.conflicts.size(), 1u);
      EXPECT_EQ(report.conflicts[0].path, GetParam().conflict.path);
      ExpectUntouched();
      return;
    }
    ASSERT_EQ(report.conflicts, vector<Conflict>{});
    EXPECT_EQ(report.resolved, vector<Conflict>{GetParam().conflict});
    ExpectInBase(*expected);
    ExpectInBase({{"other", "new"}});
    // What was theirs comes back exactly.
    const auto undone = workspace().Undo("");
    ASSERT_OK(undone);
    EXPECT_EQ(undone->conflicts, vector<Conflict>{});
    EXPECT_EQ(Compare(theirs_, Base(), {.ctime = false}), "");
  }

  TreeView theirs_;
  Result<TreeView> ours_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, ConflictCaseTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(ConflictCaseTest, FailsAndTouchesNothing) {
  Collide();
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
            vector<Conflict>{GetParam().conflict});
  ExpectUntouched();
  // The same after a restart.
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
            vector<Conflict>{GetParam().conflict});
}

TEST_P(ConflictCaseTest, MineWins) {
  CheckMode(OnConflict::kMine, GetParam().mine);
}

TEST_P(ConflictCaseTest, TheirsWins) {
  CheckMode(OnConflict::kTheirs, GetParam().others);
}

TEST_P(ConflictCaseTest, Merges) {
  CheckMode(OnConflict::kMerge, GetParam().merged);
}

TEST_P(ConflictCaseTest, SettlesTheSameAfterARestart) {
  const auto outcomes = {std::pair(OnConflict::kMine, GetParam().mine),
                         std::pair(OnConflict::kTheirs, GetParam().others),
                         std::pair(OnConflict::kMerge, GetParam().merged)};
  for (const auto& [mode, expected] : outcomes) {
    SetUpBase();
    ASSERT_OK(GetParam().ours(fs()));
    // The first thing that the next one sees of the base is theirs.
    driver_.reset();
    ASSERT_OK(GetParam().theirs(plain_));
    const CommitReport report = Commit(mode);
    EXPECT_EQ(report.conflicts.empty(), expected.has_value());
    if (expected) ExpectInBase(*expected);
    EXPECT_EQ(FindProblems(base_.root()), "");
    driver_.reset();
  }
}

TEST_P(ConflictCaseTest, ACommitThatFailsLeavesTheConflict) {
  Collide();
  for (const auto& [way, outcome] :
       {std::pair(OnConflict::kMine, GetParam().mine),
        std::pair(OnConflict::kMerge, GetParam().merged)}) {
    // The vault cannot be made.
    ASSERT_OK(plain_.WriteFile(".txfs/vault", ""));
    const auto report = workspace().Commit(Options(way));
    EXPECT_EQ(report.has_value(), !outcome);
    ASSERT_OK(plain_.Unlink(".txfs/vault"));
    ExpectUntouched();
  }
}

// Which of a file's names are hidden below a directory that was deleted cannot
// be told once it is elsewhere.
TEST_F(ConflictTest, ADeletedDirectoryThatTheyMovedIsNoDamage) {
  base_.File("m/a/f", "1");
  base_.HardLink("m/a/f", "link");
  base_.File("m/b", "other");
  ASSERT_OK(fs().WriteFile("link", "2"));
  ASSERT_OK(fs().RemoveRecursively("m/a"));
  ASSERT_OK(plain_.Rename("m/a", "m/b", RENAME_EXCHANGE));
  EXPECT_FALSE(Commit(OnConflict::kFail).conflicts.empty());
  EXPECT_EQ(FindProblems(base_.root()), "");
}

// --- what is no conflict ---------------------------------------------------

TEST_F(ConflictTest, BothDeletedIsNone) {
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().RemoveRecursively("d"));
  ASSERT_OK(plain_.Unlink("f"));
  ASSERT_OK(plain_.RemoveRecursively("d"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", kNone}, {"d", kNone}});
}

TEST_F(ConflictTest, TouchedAndDeletedIsNone) {
  Mount();
  ASSERT_OK(fs().Chmod("d/x", 0600));
  ASSERT_OK(fs().Chmod("d/x", 0644));
  ASSERT_OK(DirectoryBecomesFile(plain_));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  EXPECT_EQ(base_.Read("d"), "file");
}

TEST_F(ConflictTest, DeletedInADirectoryThatWasDeletedIsNone) {
  ASSERT_OK(fs().Unlink("d/x"));
  ASSERT_OK(plain_.RemoveRecursively("d"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"d", kNone}});
}

TEST_F(ConflictTest, AFileThatWasOnlyTouchedIsNone) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.Utimens("f", {.mtime = {.tv_sec = 1'500'000'000}}));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", kLines + "10\n"}});
}

TEST_F(ConflictTest, AFileThatWasReplacedByAnEqualOneIsNone) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.WriteFile("copy", kLines));
  ASSERT_OK(plain_.Rename("copy", "f", 0));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", kLines + "10\n"}});
  ASSERT_OK(workspace().Undo(""));
  ExpectInBase({{"f", kLines}});
}

TEST_F(ConflictTest, ALargeFileThatWasOnlyTouchedIsNoneOnceItWasRead) {
  constexpr size_t kPart = 1 << 20;
  base_.File("read", string(3 * kPart - 5, 'x'));
  base_.File("unread", string(3 * kPart - 5, 'x'));
  base_.SetTimes();
  Mount();
  ASSERT_OK(fs().PatchFile("read", 10, "ours"));
  ASSERT_OK(fs().PatchFile("unread", 10, "ours"));
  // As a diff does.
  Bytes part(kPart);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_OK(workspace().ReadBase("read", i * kPart, part));
  }
  // The hash outlives the process.
  ASSERT_OK(fs().Remount());
  for (const char* path : {"read", "unread"}) {
    ASSERT_OK(plain_.Utimens(path, {.mtime = {.tv_sec = 1'500'000'000}}));
  }
  const auto conflicts = Commit(OnConflict::kFail).conflicts;
  EXPECT_EQ(conflicts,
            (vector<Conflict>{{"unread", "changed", "modified", ""}}));
  // Its size alone does not make it equal.
  ASSERT_OK(plain_.PatchFile("read", 20, "theirs"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 2U);
}

TEST_F(ConflictTest, AFileThatIsAsItWasButForItsTimeOfChangeIsNone) {
  // Nobody knows what was in them, but we keep what is.
  ASSERT_OK(fs().Chmod("f", 0600));
  ASSERT_OK(fs().Unlink("d/x"));
  for (const char* path : {"f", "d/x"}) {
    for (const mode_t mode : {0755, 0644}) {
      ASSERT_OK(plain_.Chmod(path, mode));
    }
  }
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
            (vector<Conflict>{{"d/x", "changed", "deleted", ""}}));
  ASSERT_OK(plain_.Chmod("f", 0700));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 2U);
}

TEST_F(ConflictTest, ACommitOfWhatIsGoneCountsNothing) {
  ASSERT_OK(fs().Mkdir("made", 0755));
  EXPECT_EQ(Commit(OnConflict::kFail).changes, 1U);
  ASSERT_OK(fs().Utimens("made", {.mtime = {.tv_sec = 1'500'000'000}}));
  ASSERT_OK(workspace().Undo(""));
  const CommitReport report = Commit(OnConflict::kFail);
  EXPECT_EQ(report.conflicts, vector<Conflict>{});
  EXPECT_EQ(report.changes, 0U);
  ExpectInBase({{"made", kNone}});
}

TEST_F(ConflictTest, AFileThatGotOneMoreNameIsNone) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.Link("f", "second"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", kLines + "10\n"}, {"second", kLines + "10\n"}});
}

TEST_F(ConflictTest, TheModeOfADirectoryInWhichWeWorkedIsTheirs) {
  ASSERT_OK(fs().WriteFile("d/n", "new"));
  ASSERT_OK(plain_.Chmod("d", 0700));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/n", "new"}});
  EXPECT_EQ(Base().at("d").mode & 07777, 0700u);
}

TEST_F(ConflictTest, ChangesBelowARenamedDirectoryComeAlong) {
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(plain_.WriteFile("d/x", "theirs"));
  ASSERT_OK(plain_.WriteFile("d/n", "theirs"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"e/x", "theirs"}, {"e/n", "theirs"}, {"d", kNone}});
}

TEST_F(ConflictTest, ADirectoryThatGoesBackKeepsWhatWasWrittenBelowIt) {
  ASSERT_OK(fs().WriteFile("d/x", "ours"));
  ASSERT_OK(fs().Rename("d", "f", RENAME_EXCHANGE));
  ASSERT_OK(plain_.Chmod("f", 0600));
  EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/x", "ours"}, {"f", kLines}});
  EXPECT_EQ(Base().at("f").mode & 07777, 0600u);
}

TEST_F(ConflictTest, WhatCannotBeComparedAnyMoreIsAChange) {
  ASSERT_OK(plain_.Link("d/x", "c"));
  base_.File("large", string(1 << 20, 'x'));
  ASSERT_OK(fs().Rename("c", "d/s/y", 0));
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(fs().AppendFile("large", "+"));
  ASSERT_OK(fs().SetXattr("f", "user.ours", "1", 0));
  ASSERT_OK(fs().Remount());
  for (const char* path : {"c", "d", "f", "large"}) {
    std::filesystem::remove_all(base_.root() + "/" + path);
  }
  for (const bool expand : {false, true}) {
    ASSERT_OK(workspace().Changes(expand, {}));
  }
  ASSERT_OK(workspace().GetStatus());
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), Conflicts().size());
  EXPECT_FALSE(Conflicts().empty());
}

TEST_F(ConflictTest, ADirectoryThatMovedAwayIsNotLookedInto) {
  ASSERT_OK(fs().WriteFile("d/n", "ours"));
  ASSERT_OK(plain_.Mkdir("d/n", 0755));
  ASSERT_OK(plain_.Rename("d", "e", 0));
  ASSERT_OK(plain_.WriteFile("d", "theirs"));
  ASSERT_OK(workspace().Changes(false, {}));
  EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
  ASSERT_OK(workspace().Refresh());
  ExpectInBase({{"d", "theirs"}, {"e/n", "/"}});
}

TEST_F(ConflictTest, MineGoesIntoTheDirectoryThatTookThePlaceOfTheOther) {
  Mount();
  ASSERT_OK(fs().Chmod("d/x", 0600));
  ASSERT_OK(plain_.Mkdir("e", 0755));
  ASSERT_OK(plain_.WriteFile("e/y", "theirs"));
  ASSERT_OK(plain_.Rename("d", "e", RENAME_EXCHANGE));
  EXPECT_FALSE(Commit(OnConflict::kFail).conflicts.empty());
  // The vault cannot be made.
  ASSERT_OK(plain_.WriteFile(".txfs/vault", ""));
  EXPECT_ERRNO(workspace().Commit(Options(OnConflict::kMine)), ENOTDIR);
  ASSERT_OK(plain_.Unlink(".txfs/vault"));
  EXPECT_FALSE(Commit(OnConflict::kFail).conflicts.empty());
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/x", "deep"}, {"d/y", "theirs"}, {"e/x", "deep"}});
  ASSERT_OK(workspace().Undo(""));
  ExpectInBase({{"d/x", kNone}, {"d/y", "theirs"}, {"e/x", "deep"}});
}

TEST_F(ConflictTest, AFileOfSeveralNamesIsFoundByTheNameItStillHas) {
  base_.HardLink("d/x", "c");
  Mount();
  ASSERT_OK(fs().WriteFile("c", "ours"));
  ASSERT_OK(plain_.Unlink("c"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/x", "ours"}, {"c", kNone}});
  ASSERT_OK(workspace().Undo(""));
  ExpectInBase({{"d/x", "deep"}, {"c", kNone}});
}

TEST_F(ConflictTest, ANameOfSeveralThatTheyGaveToADirectory) {
  base_.HardLink("d/x", "c");
  for (const OnConflict way : {OnConflict::kTheirs, OnConflict::kMine}) {
    Mount();
    ASSERT_OK(fs().WriteFile("c", "ours"));
    ASSERT_OK(plain_.Unlink("c"));
    ASSERT_OK(plain_.Mkdir("c", 0755));
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
              (vector<Conflict>{{"c", "type changed", "modified", ""}}));
    EXPECT_EQ(Commit(way).conflicts, vector<Conflict>{});
    const bool theirs = way == OnConflict::kTheirs;
    ExpectInBase(
        {{"d/x", theirs ? "deep" : "ours"}, {"c", theirs ? "/" : "ours"}});
    if (!theirs) break;
    ASSERT_OK(plain_.Rmdir("c"));
    ASSERT_OK(plain_.Link("d/x", "c"));
    ASSERT_OK(workspace().Refresh());
  }
  ASSERT_OK(workspace().Undo(""));
  ExpectInBase({{"d/x", "deep"}, {"c", "/"}});
  EXPECT_EQ(Base().at("c").mode & 07777, 0755u);
}

TEST_F(ConflictTest, ANameOfSeveralThatWeDeletedAndTheyMadeAnew) {
  base_.HardLink("d/x", "c");
  for (const OnConflict way : {OnConflict::kTheirs, OnConflict::kMine}) {
    ASSERT_OK(fs().Unlink("c"));
    ASSERT_OK(plain_.Unlink("c"));
    ASSERT_OK(plain_.WriteFile("c", "theirs"));
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
              (vector<Conflict>{{"c", "created", "deleted", ""}}));
    EXPECT_EQ(Commit(way).conflicts, vector<Conflict>{});
    const bool theirs = way == OnConflict::kTheirs;
    ExpectInBase({{"d/x", "deep"},
                  {"c", theirs ? std::optional("theirs") : std::nullopt}});
    ASSERT_OK(plain_.Unlink("d/x"));
    ASSERT_OK(plain_.WriteFile("d/x", "deep"));
    if (theirs) ASSERT_OK(plain_.Unlink("c"));
    ASSERT_OK(plain_.Link("d/x", "c"));
    driver_.reset();
  }
}

TEST_F(ConflictTest, ANameThatTheyGaveToAnotherFileIsCreated) {
  ASSERT_OK(fs().WriteFile("c", "ours"));
  ASSERT_OK(plain_.Link("d/x", "c"));
  for (const bool touches : {false, true}) {
    ASSERT_OK(fs().Remount());
    if (touches) ASSERT_OK(fs().Chmod("d/x", 0600));
    Mount();
    EXPECT_EQ(Commit(OnConflict::kMerge).conflicts,
              (vector<Conflict>{{"c", "created", "created", ""}}));
  }
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/x", "deep"}, {"c", "ours"}});
}

TEST_F(ConflictTest, ATouchedFileStillHadTheNameThatWeReplaced) {
  base_.HardLink("d/x", "c");
  // Which of them was known first decides by which the file is noted.
  for (const auto& [ours, theirs] :
       {std::pair("c", "d/x"), std::pair("d/x", "c")}) {
    Mount();
    ASSERT_OK(fs().Unlink(ours));
    ASSERT_OK(fs().WriteFile(ours, "ours"));
    ASSERT_OK(plain_.Chmod(theirs, 0644));
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
    ExpectInBase({{ours, "ours"}, {theirs, "deep"}});
    ASSERT_OK(workspace().Undo(""));
  }
}

TEST_F(ConflictTest, AFileThatBothSidesDeleteByItsNamesIsGone) {
  base_.HardLink("d/x", "c");
  // Which of them was known first decides by which the file is noted.
  for (const char* first : {"c", "d/x"}) {
    for (const char* theirs : {"c", "d/x"}) {
      ASSERT_OK(fs().Remount());
      ASSERT_OK(fs().Stat(first));
      ASSERT_OK(fs().Unlink("c"));
      ASSERT_OK(fs().Unlink("d/x"));
      ASSERT_OK(plain_.Unlink(theirs));
      EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
      ExpectInBase({{"c", kNone}, {"d/x", kNone}});
      ASSERT_OK(workspace().Undo(""));
      ASSERT_OK(plain_.Link(theirs == string("c") ? "d/x" : "c", theirs));
    }
  }
}

/// The name by which it is noted is the one that we did not move.
TEST_F(ConflictTest, AFileThatWeMovedIsThereWhenTheyDeleteItsOtherName) {
  base_.HardLink("d/x", "c");
  ASSERT_OK(fs().Stat("c"));
  ASSERT_OK(fs().Rename("d/x", "e", 0));
  ASSERT_OK(plain_.Unlink("c"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"c", kNone}, {"d/x", kNone}, {"e", "deep"}});
}

TEST_F(ConflictTest, AFileThatWeMovedAndTheyDeletedByAllItsNames) {
  base_.HardLink("d/x", "c");
  ASSERT_OK(fs().Stat("c"));
  ASSERT_OK(fs().Rename("d/x", "e", 0));
  ASSERT_OK(plain_.Unlink("c"));
  ASSERT_OK(plain_.Unlink("d/x"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts,
            (vector<Conflict>{{"c", "deleted", "renamed", ""}}));
  EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
  ExpectInBase({{"c", kNone}, {"d/x", kNone}, {"e", kNone}});
}

/// As tools do that make links of files with the same content.
TEST_F(ConflictTest, AFileThatTheyMadeALinkOfAnother) {
  for (const char* content : {"old", "another"}) {
    SetUpBase();
    base_.File("copy", content);
    ASSERT_OK(fs().AppendFile("other", "+"));
    ASSERT_OK(plain_.Unlink("other"));
    ASSERT_OK(plain_.Link("copy", "other"));
    const vector<Conflict> conflicts{{"other", "changed", "modified", ""}};
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts, conflicts);
    EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, conflicts);
    EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
    ExpectInBase({{"other", "old+"}, {"copy", content}});
    driver_.reset();
  }
}

/// It has as many names that we hide as we took away, but not the same.
TEST_F(ConflictTest, ANameThatTheyMovedToOursIsCreated) {
  const vector<Conflict> created{{"e", "created", "created", ""}};
  base_.HardLink("d/x", "c");
  // The only name that is left of it; and one of two.
  for (const bool only : {true, false}) {
    Mount();
    ASSERT_OK(fs().Stat("d/x"));
    ASSERT_OK(fs().Unlink("c"));
    ASSERT_OK(fs().WriteFile("e", "ours"));
    ASSERT_OK(plain_.Rename(only ? "d/x" : "c", "e", 0));
    if (only) ASSERT_OK(plain_.Unlink("c"));
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts, created);
    EXPECT_EQ(plain_.ReadFile("e").value_or("?"), "deep");
    ASSERT_OK(workspace().Discard());
    ASSERT_OK(plain_.Link("e", "c"));
    if (only) ASSERT_OK(plain_.Rename("e", "d/x", 0));
    ASSERT_OK(workspace().Refresh());
  }
}

TEST_F(ConflictTest, ANameThatEachSideDeletedTheOtherOfIsGone) {
  // Which of them was known first decides by which the file is looked for.
  for (const auto& [ours, theirs] :
       {std::pair("c", "d/x"), std::pair("d/x", "c")}) {
    for (const OnConflict way : {OnConflict::kMine, OnConflict::kMerge}) {
      for (const bool known : {true, false}) {
        SetUpBase();
        base_.HardLink("d/x", "c");
        if (known) Mount();
        ASSERT_OK(fs().Unlink(ours));
        ASSERT_OK(plain_.Unlink(theirs));
        const TreeView before = Base();
        const vector<Conflict> conflicts = Commit(OnConflict::kFail).conflicts;
        for (const Conflict& conflict : conflicts) {
          EXPECT_EQ(conflict, (Conflict{ours, "changed", "deleted", ""}));
        }
        const bool stays = way == OnConflict::kMerge && !conflicts.empty();
        if (!conflicts.empty()) {
          EXPECT_EQ(Commit(way).conflicts.size(), stays ? 1u : 0u);
        }
        if (stays) {
          EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
          ExpectInBase({{ours, "deep"}, {theirs, kNone}});
        } else {
          ExpectInBase({{"c", kNone}, {"d/x", kNone}});
          ASSERT_OK(workspace().Undo(""));
        }
        EXPECT_EQ(Compare(before, Base(), {.ctime = false, .mtime = !stays}),
                  "");
        driver_.reset();
        EXPECT_EQ(FindProblems(base_.root()), "");
      }
    }
  }
}

TEST_F(ConflictTest, WhatWeWroteByTheNameThatTheyDeletedIsMadeAgainThere) {
  // Which of them was known first decides by which the file is noted.
  for (const auto& [ours, theirs] :
       {std::pair("c", "d/x"), std::pair("d/x", "c")}) {
    for (const OnConflict way : {OnConflict::kMine, OnConflict::kTheirs}) {
      SetUpBase();
      base_.HardLink("d/x", "c");
      Mount();
      ASSERT_OK(fs().AppendFile(theirs, "+"));
      ASSERT_OK(fs().Chmod(theirs, 0600));
      ASSERT_OK(fs().Unlink(ours));
      ASSERT_OK(plain_.Unlink(theirs));
      EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 1u);
      EXPECT_EQ(Commit(OnConflict::kMerge).conflicts.size(), 1u);
      const TreeView before = Base();
      EXPECT_EQ(Commit(way).conflicts, vector<Conflict>{});
      if (way == OnConflict::kTheirs) {
        ExpectInBase({{ours, "deep"}, {theirs, kNone}});
      } else {
        ExpectInBase({{theirs, "deep+"}, {ours, kNone}});
        ASSERT_OK(workspace().Undo(""));
        EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
      }
      driver_.reset();
      EXPECT_EQ(FindProblems(base_.root()), "");
    }
  }
}

TEST_F(ConflictTest, TheLastOfThreeNamesThatBothDeletedTakesTheFileAlong) {
  base_.HardLink("d/x", "b");
  base_.HardLink("d/x", "c");
  for (const bool writes : {false, true}) {
    Mount();
    if (writes) ASSERT_OK(fs().Chmod("d/x", 0600));
    ASSERT_OK(fs().Unlink("b"));
    ASSERT_OK(fs().Unlink("c"));
    ASSERT_OK(plain_.Unlink("d/x"));
    const TreeView before = Base();
    // What it had is at hand: it is in the base by the names that go.
    if (writes) {
      EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 1u);
    }
    EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
    const auto left = writes ? std::optional<string>("deep") : kNone;
    ExpectInBase({{"b", kNone}, {"c", kNone}, {"d/x", left}});
    ASSERT_OK(workspace().Undo(""));
    EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
    driver_.reset();
    ASSERT_OK(plain_.Link("b", "d/x"));
  }
}

TEST_F(ConflictTest, WhatTheyWroteByTheOtherNameOfADeletedFileIsSeen) {
  // By one of the names the file is noted.
  for (const auto& [deleted, written] :
       {std::pair("e/x", "e/y"), std::pair("e/y", "e/x")}) {
    SetUpBase();
    base_.Directory("e");
    base_.HardLink("f", "e/x");
    base_.HardLink("f", "e/y");
    std::filesystem::remove(base_.root() + "/f");
    ASSERT_OK(fs().Unlink("e/x"));
    ASSERT_OK(fs().Unlink("e/y"));
    ASSERT_OK(fs().Rmdir("e"));
    driver_.reset();
    ASSERT_OK(plain_.Unlink(deleted));
    ASSERT_OK(plain_.AppendFile(written, "theirs"));
    const CommitReport refused = Commit(OnConflict::kFail);
    ASSERT_EQ(refused.conflicts.size(), 1u);
    EXPECT_EQ(refused.conflicts.front().path, written);
    EXPECT_EQ(refused.conflicts.front().ours, "deleted");
    EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
    ExpectInBase({{deleted, kNone}, {written, kLines + string("theirs")}});
    driver_.reset();
  }
}

// --- user.* attributes -----------------------------------------------------

Status BecomeFile(Driver& fs) {
  TRY(fs.WriteFile("tmp", "new"));
  return fs.Rename("tmp", "f", 0);
}

TEST_F(ConflictTest, AnAttributeThatTheBaseSetIsNotOverwritten) {
  const std::pair<std::function<Status(Driver&)>, string> replacements[] = {
      {Delete, "deleted"},
      {BecomeFile, "replaced"},
      {BecomeDirectory, "replaced"}};
  for (const auto& [ours, what] : replacements) {
    SetUpBase();
    ASSERT_OK(ours(fs()));
    if (const auto set = plain_.SetXattr("f", "user.important", "yes", 0);
        !set) {
      GTEST_SKIP() << "no extended attributes here";
    }
    const TreeView before = Base();
    // What was only deleted has no pre-image: it may have other content.
    const string reason = what == "deleted" ? "changed" : "attributes changed";
    const Conflict expected{"f", reason, what, ""};
    EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{expected});
    EXPECT_EQ(Commit(OnConflict::kMerge).conflicts.size(), 1u);
    EXPECT_EQ(Compare(before, Base(), {}), "");
    EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
    ASSERT_OK(workspace().Undo(""));
    EXPECT_EQ(Compare(before, Base(), {.ctime = false}), "");
    driver_.reset();
  }
}

TEST_F(ConflictTest, AnAttributeThatTheBaseSetStaysWithAFileThatWeKeep) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(fs().Rename("d/x", "moved", 0));
  if (const auto set = plain_.SetXattr("f", "user.important", "yes", 0); !set) {
    GTEST_SKIP() << "no extended attributes here";
  }
  ASSERT_OK(plain_.SetXattr("d/x", "user.important", "yes", 0));
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  for (const char* path : {"f", "moved"}) {
    const auto value = plain_.GetXattr(path, "user.important");
    ASSERT_OK(value);
    EXPECT_EQ(*value, "yes");
  }
}

/// The user.* attributes of an object of the base.
std::map<string, string> XattrsOf(PosixDriver& base, const string& path) {
  std::map<string, string> found;
  const auto names = base.ListXattrs(path);
  EXPECT_OK(names);
  for (const string& name : *names) {
    if (name.starts_with("user.")) found[name] = *base.GetXattr(path, name);
  }
  return found;
}

TEST_F(ConflictTest, AttributesOfADirectoryThatBothSetAreBothThere) {
  if (const auto set = plain_.SetXattr("d", "user.stays", "0", 0); !set) {
    GTEST_SKIP() << "no extended attributes here";
  }
  ASSERT_OK(plain_.SetXattr("d", "user.goes", "0", 0));
  ASSERT_OK(plain_.SetXattr("d", "user.theirs-goes", "0", 0));
  ASSERT_OK(fs().SetXattr("d", "user.ours", "1", 0));
  ASSERT_OK(fs().RemoveXattr("d", "user.goes"));
  ASSERT_OK(plain_.SetXattr("d", "user.theirs", "2", 0));
  ASSERT_OK(plain_.RemoveXattr("d", "user.theirs-goes"));
  const auto before = XattrsOf(plain_, "d");
  EXPECT_EQ(fs().ListXattrs("d")->size(), 3u);
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  const std::map<string, string> both = {
      {"user.ours", "1"}, {"user.stays", "0"}, {"user.theirs", "2"}};
  EXPECT_EQ(XattrsOf(plain_, "d"), both);
  ASSERT_OK(workspace().Undo(""));
  EXPECT_EQ(XattrsOf(plain_, "d"), before);
}

TEST_F(ConflictTest, OneAttributeOfADirectoryThatBothSetIsAConflict) {
  for (const OnConflict settled : {OnConflict::kMine, OnConflict::kTheirs}) {
    if (const auto set = plain_.SetXattr("d", "user.x", "0", 0); !set) {
      GTEST_SKIP() << "no extended attributes here";
    }
    ASSERT_OK(fs().SetXattr("d", "user.x", "1", 0));
    ASSERT_OK(fs().SetXattr("d", "user.ours", "1", 0));
    ASSERT_OK(plain_.SetXattr("d", "user.x", "2", 0));
    for (const OnConflict stays : {OnConflict::kFail, OnConflict::kMerge}) {
      EXPECT_EQ(Commit(stays).conflicts,
                (vector<Conflict>{
                    {"d", "attributes changed", "attributes changed", ""}}));
    }
    EXPECT_EQ(XattrsOf(plain_, "d")["user.x"], "2");
    EXPECT_EQ(Commit(settled).conflicts, vector<Conflict>{});
    const bool mine = settled == OnConflict::kMine;
    EXPECT_EQ(XattrsOf(plain_, "d")["user.x"], mine ? "1" : "2");
    EXPECT_EQ(fs().GetXattr("d", "user.x").value_or("?"), mine ? "1" : "2");
    EXPECT_EQ(FindProblems(base_.root()), "");
  }
}

/// A directory that a part of it needs, and that has more to commit.
TEST_F(ConflictTest, AttributesThatWentWithAPartAreTheBasesAfterIt) {
  if (const auto set = plain_.SetXattr("d", "user.stays", "0", 0); !set) {
    GTEST_SKIP() << "no extended attributes here";
  }
  base_.File("d/rest", "rest");
  ASSERT_OK(fs().SetXattr("d", "user.x", "1", 0));
  ASSERT_OK(fs().Rename("d", "moved", 0));
  ASSERT_OK(fs().Mkdir("new", 0755));
  ASSERT_OK(fs().SetXattr("new", "user.x", "1", 0));
  for (const string directory : {"moved", "new"}) {
    ASSERT_OK(fs().WriteFile(directory + "/part", "part"));
    ASSERT_OK(fs().WriteFile(directory + "/rest", "changed"));
  }
  ASSERT_OK(workspace().Commit({.paths = {"moved/part", "new/part"}}));
  EXPECT_EQ(FindProblems(base_.root()), "");
  for (const string directory : {"moved", "new"}) {
    EXPECT_EQ(XattrsOf(plain_, directory)["user.x"], "1") << directory;
    EXPECT_EQ(fs().GetXattr(directory, "user.x").value_or("?"), "1");
    ASSERT_OK(plain_.SetXattr(directory, "user.theirs", "2", 0));
    ASSERT_OK(fs().SetXattr(directory, "user.x", "3", 0));
  }
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  const std::map<string, string> both = {{"user.theirs", "2"}, {"user.x", "3"}};
  EXPECT_EQ(XattrsOf(plain_, "new"), both);
  EXPECT_EQ(XattrsOf(plain_, "moved")["user.x"], "3");
  EXPECT_EQ(XattrsOf(plain_, "moved")["user.theirs"], "2");
  EXPECT_EQ(XattrsOf(plain_, "moved")["user.stays"], "0");
  EXPECT_EQ(FindProblems(base_.root()), "");
}

/// What the base has where a file was is a file of several names that the
/// transaction has at that very name, too. It cannot be the version of both.
TEST_F(ConflictTest, AFileThatWasReplacedByOneThatWeMovedIsNotMistakenForIt) {
  base_.File("b", "gone");
  base_.File("c", "linked");
  base_.HardLink("c", "c2");
  ASSERT_OK(fs().Rename("b", "c", RENAME_EXCHANGE));
  ASSERT_OK(plain_.Rename("c", "b", 0));
  const TreeView theirs = Base();
  for (const OnConflict stays :
       {OnConflict::kFail, OnConflict::kMerge, OnConflict::kMine}) {
    const bool mine = stays == OnConflict::kMine;
    EXPECT_EQ(
        Commit(stays).conflicts,
        (vector<Conflict>{{"b", "changed", "renamed",
                           mine ? "its earlier content is not kept" : ""}}));
    EXPECT_EQ(Compare(theirs, Base(), {}), "");
  }
  EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
  EXPECT_EQ(Compare(theirs, Base(), {.ctime = false, .mtime = false}), "");
  EXPECT_EQ(Compare(Base(), Mount(), {.ino = false, .ctime = false}), "");
}

/// The same, where we wrote to both.
TEST_F(ConflictTest, AFileThatWasReplacedByALinkOfOneThatWeWroteToIsMadeAgain) {
  base_.File("b", "old b");
  base_.File("c", "old c");
  base_.HardLink("c", "c2");
  ASSERT_OK(fs().PatchFile("b", 0, "our"));
  ASSERT_OK(fs().PatchFile("c", 0, "our"));
  ASSERT_OK(plain_.Unlink("b"));
  ASSERT_OK(plain_.Link("c2", "b"));
  const TreeView theirs = Base();
  for (const OnConflict stays : {OnConflict::kFail, OnConflict::kMerge}) {
    EXPECT_EQ(Commit(stays).conflicts,
              (vector<Conflict>{{"b", "changed", "modified", ""}}));
  }
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  for (Driver* side : std::initializer_list<Driver*>{&plain_, &fs()}) {
    EXPECT_EQ(side->ReadFile("b").value_or(""), "our b");
    EXPECT_EQ(side->ReadFile("c").value_or(""), "our c");
    EXPECT_EQ(side->ReadFile("c2").value_or(""), "our c");
    EXPECT_EQ(side->Stat("b")->st_nlink, 1U);
    EXPECT_EQ(side->Stat("c")->st_nlink, 2U);
  }
  ASSERT_OK(workspace().Undo(""));
  EXPECT_EQ(Compare(theirs, Base(), {.ctime = false}), "");
}

TEST_F(ConflictTest, AttributesOfAFileThatBothSetAreMerged) {
  if (const auto set = plain_.SetXattr("f", "user.theirs", "2", 0); !set) {
    GTEST_SKIP() << "no extended attributes here";
  }
  ASSERT_OK(plain_.RemoveXattr("f", "user.theirs"));
  ASSERT_OK(fs().SetXattr("f", "user.ours", "1", 0));
  ASSERT_OK(plain_.SetXattr("f", "user.theirs", "2", 0));
  EXPECT_NE(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  const std::map<string, string> both = {{"user.ours", "1"},
                                         {"user.theirs", "2"}};
  EXPECT_EQ(XattrsOf(plain_, "f"), both);
}

TEST_F(ConflictTest,
       OneMoreNameOfAFileWithAttributesThatWeDeletedIsNoConflict) {
  if (const auto set = plain_.SetXattr("f", "user.old", "yes", 0); !set) {
    GTEST_SKIP() << "no extended attributes here";
  }
  ASSERT_OK(BecomeFile(fs()));
  ASSERT_OK(plain_.Link("f", "second"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", "new"}, {"second", kLines}});
}

TEST_F(ConflictTest, OurModeGoesToTheirContent) {
  ASSERT_OK(fs().Chmod("f", 0600));
  ASSERT_OK(plain_.WriteFile("f", "theirs"));
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", "theirs"}});
  EXPECT_EQ(Base().at("f").mode & 07777, 0600u);
}

TEST_F(ConflictTest, WhatBothSidesGaveAnotherContentTheKernelForgets) {
  const std::function<Status(Driver&)> changes[] = {Chmod, Move, Append};
  for (const auto& ours : changes) {
    for (const OnConflict way :
         {OnConflict::kMine, OnConflict::kTheirs, OnConflict::kMerge}) {
      SetUpBase();
      ASSERT_OK(ours(fs()));
      ASSERT_OK(ChangeHead(plain_));
      StaleCaches stale;
      workspace().OnStaleCaches([&](const StaleCaches& told) { stale = told; });
      EXPECT_EQ(Commit(way).conflicts, vector<Conflict>{});
      EXPECT_TRUE(std::ranges::any_of(stale.inodes,
                                      [](Ino ino) { return ino != kRootIno; }));
      driver_.reset();
    }
  }
}

TEST_F(ConflictTest, TheSameModeIsNone) {
  ASSERT_OK(fs().Chmod("d", 0700));
  ASSERT_OK(plain_.Chmod("d", 0700));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
}

TEST_F(ConflictTest, TwoModesAreOneAndTheirsKeepsTheRest) {
  ASSERT_OK(fs().Chmod("d", 0700));
  ASSERT_OK(fs().WriteFile("d/n", "new"));
  ASSERT_OK(plain_.Chmod("d", 0711));
  const vector<Conflict> expected = {
      {"d", "attributes changed", "attributes changed", ""}};
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, expected);
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, expected);
  EXPECT_EQ(Commit(OnConflict::kTheirs).conflicts, vector<Conflict>{});
  ExpectInBase({{"d/n", "new"}});
  EXPECT_EQ(Base().at("d").mode & 07777, 0711u);
}

/// Of which nobody read the content.
TEST_F(ConflictTest, ModesOfAFileAreOneUnlessTheyAreTheSame) {
  ASSERT_OK(fs().Chmod("f", 0700));
  ASSERT_OK(plain_.Chmod("f", 0700));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ASSERT_OK(fs().Chmod("f", 0750));
  ASSERT_OK(plain_.Chmod("f", 0711));
  const vector<Conflict> expected = {
      {"f", "attributes changed", "attributes changed", ""}};
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, expected);
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, expected);
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  EXPECT_EQ(Base().at("f").mode & 07777, 0750u);
  ExpectInBase({{"f", kLines}});
}

// --- pre-images ------------------------------------------------------------

TEST_F(ConflictTest, WithoutAPreImageMineOfAPatchedFileStaysAConflict) {
  const string large(Preimages::kMaxSize + 1, 'x');
  base_.File("large", large);
  ASSERT_OK(fs().AppendFile("large", "+"));
  ASSERT_OK(plain_.WriteFile("large", "other"));
  const CommitReport report = Commit(OnConflict::kMine);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_EQ(report.conflicts[0].note, "its earlier content is not kept");
  ASSERT_OK(fs().WriteFile("large", "all ours"));
  EXPECT_EQ(Commit(OnConflict::kMine).conflicts, vector<Conflict>{});
  ExpectInBase({{"large", "all ours"}});
}

TEST_F(ConflictTest, APreImageSurvivesARestartAndTheNextStarts) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().AppendFile("d/x", "+"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  ASSERT_OK(plain_.Utimens("d/x", {.mtime = {.tv_sec = 1'500'000'000}}));
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
  ExpectInBase(
      {{"f", With(kLines, "1\n", "one\n") + "10\n"}, {"d/x", "deep+"}});
}

TEST_F(ConflictTest, ADamagedPreImageIsNone) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  const string file =
      ".txfs/txn/" + workspace().transaction_id() + "/preimages";
  ASSERT_OK(plain_.PatchFile(file, 16 + 72 + 3, "?"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  const CommitReport report = Commit(OnConflict::kMerge);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_EQ(report.conflicts[0].note, "its earlier content is not kept");
  EXPECT_EQ(FindProblems(base_.root()).substr(0, 16), "preimages.record");
  ASSERT_OK(workspace().Discard());
}

TEST_F(ConflictTest, WhatAKillLeftOfAPreImageIsCutOff) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  base_.File("long", string(10'000, 'x'));
  ASSERT_OK(fs().AppendFile("long", "+"));
  const string file =
      ".txfs/txn/" + workspace().transaction_id() + "/preimages";
  const uint64_t size = plain_.Stat(file)->st_size;
  ASSERT_OK(plain_.Truncate(file, size - 1));
  driver_.reset();
  EXPECT_EQ(FindProblems(base_.root()), "");
  // A shorter one in its place.
  ASSERT_OK(fs().AppendFile("d/x", "+"));
  EXPECT_LT(plain_.Stat(file)->st_size, size - 5'000);
  driver_.reset();
  EXPECT_EQ(FindProblems(base_.root()), "");
  ASSERT_OK(plain_.Utimens("d/x", {.mtime = {.tv_sec = 1'500'000'000}}));
  ASSERT_OK(plain_.Utimens("f", {.mtime = {.tv_sec = 1'500'000'000}}));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
}

TEST_F(ConflictTest, AnEmptyFileOfPreImagesIsAKillsWork) {
  ASSERT_OK(plain_.WriteFile(
      ".txfs/txn/" + workspace().transaction_id() + "/preimages", ""));
  EXPECT_EQ(FindProblems(base_.root()), "");
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.Utimens("f", {.mtime = {.tv_sec = 1'500'000'000}}));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
}

TEST_F(ConflictTest, PreImagesOfAnotherVersionAreLeftAlone) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  const string file =
      ".txfs/txn/" + workspace().transaction_id() + "/preimages";
  ASSERT_OK(plain_.PatchFile(file, 8, "\2"));
  const auto before = plain_.ReadFile(file);
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().AppendFile("d/x", "+"));
  const auto after = plain_.ReadFile(file);
  ASSERT_OK(before);
  ASSERT_OK(after);
  EXPECT_EQ(*after, *before);
  EXPECT_EQ(FindProblems(base_.root()).substr(0, 8), "version:");
  ASSERT_OK(workspace().Discard());
}

TEST_F(ConflictTest, ADamagedTailOfThePreImagesIsCutOff) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  const string file =
      ".txfs/txn/" + workspace().transaction_id() + "/preimages";
  ASSERT_OK(fs().Remount());
  ASSERT_OK(plain_.AppendFile(file, string(100, '?')));
  ASSERT_OK(fs().AppendFile("d/x", "+"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(plain_.Utimens("f", {.mtime = {.tv_sec = 1'500'000'000}}));
  ASSERT_OK(plain_.Utimens("d/x", {.mtime = {.tv_sec = 1'500'000'000}}));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
}

// --- merging ---------------------------------------------------------------

TEST_F(ConflictTest, AMergeTakesModeAndContentFromDifferentSides) {
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  ASSERT_OK(plain_.Chmod("f", 0755));
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", With(kLines, "1\n", "one\n") + "10\n"}});
  EXPECT_EQ(Base().at("f").mode & 07777, 0755u);
}

/// Each merge would take the place of the other.
TEST_F(ConflictTest, AFileThatWouldBeMergedTwiceStaysAConflict) {
  base_.File("a", kLines);
  base_.File("b", kLines);
  ASSERT_OK(fs().WriteFile("new", kLines + "10\n"));
  ASSERT_OK(fs().Rename("new", "a", 0));
  ASSERT_OK(fs().Unlink("b"));
  ASSERT_OK(fs().Link("a", "b"));
  ASSERT_OK(plain_.WriteFile("a", With(kLines, "1\n", "one\n")));
  ASSERT_OK(plain_.WriteFile("b", With(kLines, "9\n", "nine\n")));
  const CommitReport report = Commit(OnConflict::kMerge);
  ASSERT_EQ(report.conflicts.size(), 1u);
  EXPECT_EQ(report.conflicts.front().path, "b");
  EXPECT_EQ(base_.Read("a"), With(kLines, "1\n", "one\n"));
  EXPECT_EQ(base_.Read("b"), With(kLines, "9\n", "nine\n"));
}

/// What it staged for that, too.
TEST_F(ConflictTest, AMergeThatIsRefusedLeavesNothingInTheSpool) {
  base_.File("a", kLines);
  base_.File("b", kLines);
  for (const char* name : {"a", "b"}) {
    ASSERT_OK(fs().WriteFile(name, kLines + "10\n"));
    ASSERT_OK(plain_.WriteFile(name, With(kLines, "1\n", "one\n")));
  }
  const auto segments = [&] {
    vector<string> names;
    const string spool =
        base_.root() + "/.txfs/txn/" + workspace().transaction_id() + "/spool";
    for (const auto& file : std::filesystem::directory_iterator(spool)) {
      names.push_back(file.path().filename());
    }
    std::ranges::sort(names);
    return names;
  };
  // What the transaction has comes to the spool with the first attempt.
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 2u);
  const auto before = segments();
  ASSERT_OK(plain_.WriteFile(".txfs/vault", ""));
  EXPECT_FALSE(workspace().Commit(Options(OnConflict::kMerge)));
  EXPECT_FALSE(workspace().Commit(Options(OnConflict::kMine)));
  EXPECT_EQ(segments(), before);
  ASSERT_OK(plain_.Unlink(".txfs/vault"));
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
}

TEST_F(ConflictTest, WhatDoesNotMergeIsNotTouched) {
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(fs().AppendFile("d/x", "\nours"));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  ASSERT_OK(plain_.WriteFile("d/x", "theirs"));
  const TreeView before = Mount();
  const CommitReport report = Commit(OnConflict::kMerge);
  EXPECT_EQ(report.conflicts,
            (vector<Conflict>{{"d/x", "changed", "modified", "does not merge"},
                              {"f", "changed", "modified", "does not merge"}}));
  EXPECT_EQ(Compare(before, Mount(), {}), "");
}

TEST_F(ConflictTest, MarkersAreWrittenAndTheNextCommitGoesThrough) {
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  ASSERT_OK(fs().WriteFile("d/s/y", "deeper\nours\n"));  // merges
  ASSERT_OK(plain_.Chmod("d/s/y", 0600));
  StaleCaches stale;
  workspace().OnStaleCaches([&](const StaleCaches& told) { stale = told; });
  const CommitReport report = Commit(OnConflict::kMerge, true);
  EXPECT_EQ(report.conflicts, (vector<Conflict>{{"f", "changed", "modified",
                                                 "has conflict markers now"}}));
  EXPECT_EQ(stale.inodes.size(), 1u);
  const auto marked = fs().ReadFile("f");
  ASSERT_OK(marked);
  EXPECT_EQ(marked->substr(0, 22), "<<<\neins\n===\none\n>>>\n2");
  EXPECT_EQ(base_.Read("f"), With(kLines, "1\n", "one\n"));

  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "uno\n")));
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
  ExpectInBase(
      {{"f", With(kLines, "1\n", "uno\n")}, {"d/s/y", "deeper\nours\n"}});
}

TEST_F(ConflictTest, WhatIsChangedAfterTheMarkersIsAConflictAgainAndMerges) {
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  EXPECT_EQ(Commit(OnConflict::kMerge, true).conflicts.size(), 1u);
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(plain_.WriteFile(
      "f", With(With(kLines, "1\n", "one\n"), "9\n", "nine\n")));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts.size(), 1u);
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", With(With(kLines, "1\n", "eins\n"), "9\n", "nine\n")}});
}

TEST_F(ConflictTest, ARollbackTakesMarkersBack) {
  ASSERT_OK(fs().WriteFile("f", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(workspace().MakeSavepoint("before"));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  EXPECT_EQ(Commit(OnConflict::kMerge, true).conflicts.size(), 1u);
  EXPECT_EQ(Conflicts().size(), 0u);
  ASSERT_OK(workspace().Rollback("before"));
  EXPECT_EQ(Conflicts(), (vector<Conflict>{{"f", "changed", "modified", ""}}));
  // What the base had before is still known.
  ASSERT_OK(fs().WriteFile("f", With(kLines, "9\n", "neun\n")));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Commit(OnConflict::kMerge).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", With(With(kLines, "1\n", "one\n"), "9\n", "neun\n")}});
}

TEST_F(ConflictTest, ARollbackToBeforeTheFirstTouchEndsTheConflict) {
  ASSERT_OK(workspace().MakeSavepoint("before"));
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  ASSERT_OK(plain_.WriteFile("f", "theirs"));
  EXPECT_EQ(Conflicts().size(), 1u);
  ASSERT_OK(workspace().Rollback("before"));
  EXPECT_EQ(Conflicts(), vector<Conflict>{});
  // The mount shows the base's file now: who goes on builds upon it.
  ASSERT_OK(fs().AppendFile("f", "10\n"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", "theirs10\n"}});
}

TEST_F(ConflictTest, MarkersInAReplacedFileAreAcceptedToo) {
  ASSERT_OK(fs().WriteFile("tmp", With(kLines, "1\n", "eins\n")));
  ASSERT_OK(fs().Rename("tmp", "f", 0));
  ASSERT_OK(plain_.WriteFile("f", With(kLines, "1\n", "one\n")));
  EXPECT_EQ(Commit(OnConflict::kMerge, true).conflicts.size(), 1u);
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Conflicts(), vector<Conflict>{});
  ASSERT_OK(fs().WriteFile("f", "edited"));
  EXPECT_EQ(Commit(OnConflict::kFail).conflicts, vector<Conflict>{});
  ExpectInBase({{"f", "edited"}});
}

}  // namespace
}  // namespace txfs::testing
