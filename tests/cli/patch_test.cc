#include "cli/diff/patch.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <vector>

#include "temp_tree.h"

namespace txfs::cli {
namespace {

/// A change and the contents that its sides have.
class PatchTest : public testing::Test {
 protected:
  /// Both sides of a path that is in both trees, or of a rename.
  void Change(const std::string& old_path, const std::string& path) {
    NetChange change{
        .kind = old_path == path ? ChangeKind::kModified : ChangeKind::kRenamed,
        .path = path,
        .old_path = old_path == path ? "" : old_path,
        .before = Side(before_, old_path),
        .after = Side(after_, path)};
    const auto& old_file = before_.at(old_path);
    const auto& new_file = after_.at(path);
    change.content = old_file.content != new_file.content ||
                     (old_file.mode & S_IFMT) != (new_file.mode & S_IFMT);
    change.attributes = old_file.mode != new_file.mode;
    changes_.push_back(change);
  }

  /// A change for every path of the trees that differs, without renames.
  void ChangeAll() {
    for (const auto& [path, file] : before_) {
      if (!after_.contains(path)) {
        changes_.push_back({.kind = ChangeKind::kDeleted,
                            .path = path,
                            .old_path = "",
                            .before = Side(before_, path),
                            .after = std::nullopt,
                            .content = true});
      } else if (after_[path] != file) {
        Change(path, path);
      }
    }
    for (const auto& [path, file] : after_) {
      if (before_.contains(path)) continue;
      changes_.push_back({.kind = ChangeKind::kAdded,
                          .path = path,
                          .old_path = "",
                          .before = std::nullopt,
                          .after = Side(after_, path),
                          .content = true});
    }
  }

  std::vector<FileChange> Files() {
    bool skipped = false;
    auto files = FileChanges(changes_, Reader(), &skipped);
    EXPECT_TRUE(files) << files.error().ToString();
    EXPECT_FALSE(skipped);
    return files ? *files : std::vector<FileChange>();
  }

  std::string Patch() {
    std::string patch;
    const Status written =
        WritePatch(Files(), Reader(), [&](LineStyle, std::string_view text) {
          patch += text;
          return true;
        });
    EXPECT_TRUE(written) << written.error().ToString();
    return patch;
  }

  /// The patch makes git turn the tree before into the tree after.
  void ExpectGitApplies() {
    const std::string patch = Patch();
    const TempTree tree(before_);
    std::string said;
    EXPECT_EQ(tree.RunGit("apply --whitespace=nowarn -", patch, said), 0)
        << said << "\n"
        << patch;
    EXPECT_TRUE(tree.Read() == after_) << patch;
  }

  ContentReader Reader() {
    return [this](std::span<const WantedSide> sides) -> Result<Contents> {
      Contents contents;
      for (const WantedSide& wanted : sides) contents.push_back(Read(wanted));
      return contents;
    };
  }

  /// The mode of a file that may not be read.
  static constexpr uint32_t kClosed = 0;
  Tree before_, after_;
  std::vector<NetChange> changes_;
  int reads_ = 0;

 private:
  Result<std::string> Read(const WantedSide& wanted) {
    ++reads_;
    const ChangeSide& side = *wanted.side;
    if (side.attr.type == FileType::kSymlink) return side.symlink;
    if (side.attr.mode == kClosed) return Fail(EACCES, "open");
    return contents_.at(Raw(side.ino));
  }

  std::optional<ChangeSide> Side(const Tree& tree, const std::string& path) {
    const TreeFile& file = tree.at(path);
    ChangeSide side;
    side.attr.type = TypeOfMode(file.mode).value();
    side.attr.mode = file.mode & 07777;
    side.attr.size = file.content.size();
    if (side.attr.type == FileType::kSymlink) side.symlink = file.content;
    contents_.push_back(file.content);
    side.ino = Ino{contents_.size() - 1};
    return side;
  }

  std::vector<std::string> contents_;
};

constexpr uint32_t kLink = 0120000;

std::string Lines(int count, const std::string& prefix) {
  std::string text;
  for (int i = 0; i < count; ++i) text += prefix + std::to_string(i) + "\n";
  return text;
}

TEST_F(PatchTest, OfNothingIsNothing) { EXPECT_EQ(Patch(), ""); }

TEST_F(PatchTest, ModifiesAddsAndDeletes) {
  before_ = {{"a/b/c.txt", {.content = Lines(50, "x")}},
             {"gone", {.content = "gone\n"}},
             {"z", {.content = "1\n"}}};
  after_ = {{"a/b/c.txt", {.content = Lines(25, "x") + "y\n"}},
            {"new/deep/file", {.content = "fresh, quite unlike\n"}},
            {"z", {.content = "2\n"}}};
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, HandlesContentWithoutNewlineAndEmptyFiles) {
  before_ = {{"no-newline", {.content = "a\nb"}},
             {"filled", {.content = ""}},
             {"emptied", {.content = "x\n"}},
             {"empty-gone", {.content = ""}}};
  after_ = {{"no-newline", {.content = "a\nc"}},
            {"filled", {.content = "x"}},
            {"emptied", {.content = ""}},
            {"empty-new", {.content = ""}}};
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, HandlesExecutableBitsAndLinks) {
  before_ = {{"tool", {.content = "#!/bin/sh\n"}},
             {"link", {.mode = kLink, .content = "tool"}},
             {"becomes-link", {.content = "text\n"}},
             {"becomes-file", {.mode = kLink, .content = "tool"}}};
  after_ = {{"tool", {.mode = 0100755, .content = "#!/bin/sh\n"}},
            {"link", {.mode = kLink, .content = "elsewhere/tool"}},
            {"becomes-link", {.mode = kLink, .content = "tool"}},
            {"becomes-file", {.content = "text\n"}},
            {"new-link", {.mode = kLink, .content = "nowhere"}}};
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, HandlesBinaryContent) {
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 100'000; ++i) {
    state = state * 1664525 + 1013904223;
    noise += static_cast<char>(state >> 24);
  }
  before_ = {{"blob", {.content = noise}}, {"gone", {.content = noise + "1"}}};
  after_ = {{"blob", {.content = noise.substr(0, 60'000) + "tail"}},
            {"fresh", {.content = std::string("\0\1\2", 3)}}};
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, QuotesOddNames) {
  for (const std::string name :
       {"with space", "tab\there", "new\nline", "quote\"s", "back\\slash",
        "caf\xC3\xA9", "not-utf8-\xFF\xFE", "trailing ", " leading", "-dash",
        "a b/c d/e f", "\x01\x1B[31m", "b/b", "a => b", "{x}"}) {
    before_["old/" + name] = {.content = name + "\nold\n"};
    after_["old/" + name] = {.content = name + "\nnew\n"};
    after_["fresh/" + name] = {.content = "unlike all else: " + name};
    before_["gone/" + name] = {.content = Lines(3, name)};
  }
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, SaysRenamesThatTheJournalKnows) {
  before_ = {{"from", {.content = Lines(40, "a")}},
             {"odd \"from", {.content = "1\n2\n3\n"}},
             {"rewritten", {.content = "abc\n"}}};
  after_ = {{"to/there", {.content = Lines(40, "a") + "more\n"}},
            {"odd\nto", {.mode = 0100755, .content = "1\n2\n3\n"}},
            {"quite-new", {.content = Lines(9, "zzzz")}}};
  Change("from", "to/there");
  Change("odd \"from", "odd\nto");
  Change("rewritten", "quite-new");
  const std::string patch = Patch();
  EXPECT_NE(patch.find("rename from from\nrename to to/there\n"),
            std::string::npos)
      << patch;
  ExpectGitApplies();
}

TEST_F(PatchTest, ReadsWhatFollowsChangesWithoutContent) {
  before_ = {{"a", {.content = "1\n"}},
             {"b", {.content = "same\n"}},
             {"c", {.content = "2\n"}}};
  after_ = {{"a", {.content = "one\n"}},
            {"b", {.mode = 0100755, .content = "same\n"}},
            {"c", {.content = "two\n"}},
            {"d", {.content = std::string(2 << 20, 'x')}},
            {"e", {.content = "e\n"}}};
  ChangeAll();
  ExpectGitApplies();
  EXPECT_EQ(reads_, 6);
}

std::string PrintOf(const GitDiff& diff) {
  std::string patch;
  EXPECT_TRUE(
      diff.Print([&](LineStyle, std::string_view text) { patch += text; }));
  return patch;
}

using Side = std::optional<std::string>;

std::vector<GitFile> FilesOf(const std::string& path, const Side& side) {
  if (!side) return {};
  return {{.path = path, .mode = kGitFile, .content = *side}};
}

TEST(GitDiffTest, OfOneFileIsAsThatOfTrees) {
  const std::string bytes("\0\1\2binary\n", 10);
  const std::vector<Side> sides = {std::nullopt,
                                   "",
                                   "a\n",
                                   "a",
                                   Lines(40, "x"),
                                   Lines(9, "x") + "y\n" + Lines(40, "x"),
                                   Lines(40, "x") + "no newline",
                                   "\r\n\n \n",
                                   bytes,
                                   bytes + Lines(300, "z"),
                                   "\xFF\xFE\n"};
  for (const std::string path :
       {"f", "dir/sub/f.c", "odd \"name\"\twith\n\xFF", "-n", "a b"}) {
    for (const Side& before : sides) {
      for (const Side& after : sides) {
        if (!before && !after) continue;
        const auto trees =
            GitDiff::Compare(FilesOf(path, before), FilesOf(path, after), 0);
        const auto one = GitDiff::OfFile(path, before, after);
        ASSERT_TRUE(trees && one);
        EXPECT_EQ(PrintOf(*one), PrintOf(*trees));
        const auto counted = one->CountLines();
        const auto expected = trees->CountLines();
        ASSERT_TRUE(counted && expected);
        EXPECT_EQ(counted->insertions, expected->insertions);
        EXPECT_EQ(counted->deletions, expected->deletions);
        EXPECT_EQ(counted->binary, expected->binary);
      }
    }
  }
}

TEST_F(PatchTest, ReadsNothingForAPureRename) {
  before_ = {{"from", {.content = Lines(40, "a")}}};
  after_ = {{"to", {.content = Lines(40, "a")}}};
  Change("from", "to");
  EXPECT_EQ(Patch(),
            "diff --git a/from b/to\nsimilarity index 100%\nrename from from\n"
            "rename to to\n");
  EXPECT_EQ(reads_, 0);
  ExpectGitApplies();
}

TEST_F(PatchTest, WhatMovesIntoAGitDirectoryIsSeenToGo) {
  before_ = {{"src/f", {.content = "f\n"}}, {".git/x", {.content = "x\n"}}};
  after_ = {{".git/src/f", {.content = "f\n"}}, {"x", {.content = "x\n"}}};
  Change("src/f", ".git/src/f");
  Change(".git/x", "x");
  const auto files = Files();
  ASSERT_EQ(files.size(), 4u);
  EXPECT_EQ(files[1].status, 'D');
  EXPECT_EQ(files[1].net.path, ".git/x");
  const std::string patch = Patch();
  EXPECT_NE(patch.find("deleted file mode 100644"), std::string::npos) << patch;
  EXPECT_NE(patch.find("--- a/src/f"), std::string::npos) << patch;
  EXPECT_NE(patch.find("+++ b/x"), std::string::npos) << patch;
  EXPECT_EQ(patch.find(".git/"), std::string::npos) << patch;
}

TEST_F(PatchTest, FindsRenamesByContent) {
  before_ = {{"old-name", {.content = Lines(40, "a")}}};
  after_ = {{"new-name", {.content = Lines(40, "a") + "b\n"}}};
  ChangeAll();
  const auto files = Files();
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].status, 'R');
  EXPECT_TRUE(files[0].net.content);
  EXPECT_GT(files[0].similarity, 80U);
  EXPECT_NE(Patch().find("rename from old-name"), std::string::npos);
  ExpectGitApplies();
}

TEST_F(PatchTest, SwapsNames) {
  before_ = {{"a", {.content = "one\n"}}, {"b", {.content = "two\n"}}};
  after_ = {{"a", {.content = "two\n"}}, {"b", {.content = "one\n"}}};
  Change("a", "b");
  Change("b", "a");
  ExpectGitApplies();
}

TEST_F(PatchTest, PutsAFileWhereADirectoryWas) {
  before_ = {{"d/x", {.content = "one\n"}}, {"f", {.content = "two\n"}}};
  after_ = {{"d", {.content = "file\n"}}, {"f/y", {.content = "deep\n"}}};
  ChangeAll();
  ExpectGitApplies();
}

TEST_F(PatchTest, SaysInACommentWhatGitCannot) {
  before_ = {{"secret", {.content = "a\n"}}, {"z", {.content = "a\n"}}};
  after_ = {{"secret", {.mode = 0100600, .content = "a\n"}},
            {"z", {.content = "b\n"}}};
  ChangeAll();
  const std::string patch = Patch();
  EXPECT_TRUE(patch.starts_with("# txfs: mode 0644 -> 0600  secret\n"))
      << patch;
  after_["secret"].mode = 0100644;
  const TempTree tree(before_);
  std::string said;
  EXPECT_EQ(tree.RunGit("apply -", patch, said), 0) << said;
  EXPECT_TRUE(tree.Read() == after_);
}

TEST_F(PatchTest, LeavesTheRepositoryItselfOut) {
  before_ = {{".git/index", {.content = "a\n"}}};
  after_ = {{".git/index", {.content = "b\n"}},
            {"sub/.git/HEAD", {.content = "x"}}};
  ChangeAll();
  EXPECT_EQ(Patch(), "");
  EXPECT_EQ(Files().size(), 2U);
}

TEST_F(PatchTest, CountsLines) {
  before_ = {{"text", {.content = "1\n2\n3\n"}}};
  after_ = {{"text", {.content = "1\n3\n4\n5\n"}},
            {"bin", {.content = std::string("\0x", 2)}}};
  ChangeAll();
  const auto rows = StatRows(Files(), Reader());
  ASSERT_TRUE(rows) << rows.error().ToString();
  EXPECT_EQ(StatTable(*rows, 80),
            " bin  | Bin 0 -> 2 bytes\n"
            " text | 3 ++-\n"
            " 2 files changed, 2 insertions(+), 1 deletion(-)\n");
}

TEST_F(PatchTest, OfAHugeFileIsALineAndIsNotRead) {
  before_ = {{"huge", {.content = "a"}}};
  after_ = {{"huge", {.content = "b"}}};
  ChangeAll();
  changes_[0].after->attr.size = kPatchContentMax + 1;
  EXPECT_EQ(
      Patch(),
      "diff --git a/huge b/huge\nBinary files a/huge and b/huge differ\n");
  EXPECT_EQ(reads_, 0);
}

TEST_F(PatchTest, OfWhatMayNotBeReadIsALineThatGitIgnores) {
  const uint32_t closed = S_IFREG | kClosed;
  before_ = {{"gone", {.mode = closed, .content = "a"}},
             {"kept", {.content = "a"}},
             {"z", {.content = "old\n"}}};
  after_ = {{"added", {.mode = closed, .content = "a"}},
            {"kept", {.mode = closed, .content = "b"}},
            {"z", {.content = "new\n"}}};
  ChangeAll();
  const std::string patch = Patch();
  for (const char* line :
       {"# txfs: deleted, content cannot be read  gone\n",
        "# txfs: added, content cannot be read  added\n",
        "# txfs: changed, content cannot be read  kept\n", "-old\n+new\n"}) {
    EXPECT_NE(patch.find(line), std::string::npos) << patch;
  }
  const auto rows = StatRows(Files(), Reader());
  ASSERT_TRUE(rows) << rows.error().ToString();
  EXPECT_EQ(StatTable(*rows, 80),
            " added | cannot be read\n"
            " gone  | cannot be read\n"
            " kept  | cannot be read\n"
            " z     | 2 +-\n"
            " 4 files changed, 1 insertion(+), 1 deletion(-)\n");
}

TEST(NameStatusTest, IsGits) {
  FileChange change;
  change.status = 'R';
  change.similarity = 87;
  change.net.old_path = "a b";
  change.net.path = "new\nline";
  EXPECT_EQ(NameStatusLine(change, false), "R087\ta b\t\"new\\nline\"\n");
  EXPECT_EQ(NameStatusLine(change, true),
            std::string("R087\0a b\0new\nline\0", 18));
  FileChange directory{.status = 'A', .net = {.path = "dir"}};
  directory.net.after = ChangeSide{};
  directory.net.after->attr.type = FileType::kDirectory;
  EXPECT_EQ(NameStatusLine(directory, false), "A\tdir/\n");
}

TEST(ColourTest, EndsBeforeEachLineEnd) {
  EXPECT_EQ(Coloured(LineStyle::kAdded, "+x\n"), "\033[32m+x\033[m\n");
  EXPECT_EQ(Coloured(LineStyle::kPlain, " x\n"), " x\n");
}

std::string JsonArrayOf(const std::vector<FileChange>& changes) {
  std::string json;
  WriteJsonArray(changes, [&](std::string_view text) { json += text; });
  return json;
}

TEST(JsonArrayTest, InPiecesIsAsInOne) {
  std::vector<FileChange> changes;
  Document array = Document::array();
  for (const char* path : {"a", "b\n\xFF", "c"}) {
    EXPECT_EQ(JsonArrayOf(changes), Dump(array, 2) + "\n");
    changes.push_back({.status = 'A', .net = {.path = path}});
    array.push_back(ChangeDocument(changes.back()));
  }
  EXPECT_EQ(JsonArrayOf(changes), Dump(array, 2) + "\n");
}

TEST(JsonArrayTest, KeepsBytesThatAreNoUtf8) {
  FileChange change{.status = 'A', .net = {.path = "n\xFF"}};
  change.net.after = ChangeSide{};
  const std::string json = JsonArrayOf({change});
  EXPECT_NE(json.find("\"path_bytes\": \"bv8=\""), std::string::npos) << json;
}

}  // namespace
}  // namespace txfs::cli
