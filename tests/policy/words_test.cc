#include "policy/words.h"

#include <gtest/gtest.h>

#include "policy/load.h"

namespace txfs::policy {
namespace {

std::string WordsOf(const std::string& text) {
  const auto loaded = Load("schema = 1\n" + text, "rules.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  return loaded
             ? InWords(loaded->rules, loaded->limits, loaded->exec_rules.size())
             : "";
}

TEST(WordsTest, TellWhatWhyAndWhatInsteadAndWhereItDoesNotHold) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "keys"
path = ["*.pem", "keys/"]
ops = ["content", "unlink"]
layer = "base"
type = ["file", "symlink"]
nocase = true
with_directory = false
unless = [{ path = ["keys/old", "*.pub.pem"] }, { type = "symlink", layer = "base" }]
errno = "EROFS"
reason = "nothing brings them back"
suggest = "ask for a new one"
)");
  EXPECT_NE(
      words.find("\n## keys\n\n"
                 "Applies to `*.pem`, `keys/`, as a file or symlink, if it "
                 "existed when the transaction began, in any letter case: "
                 "content, unlink (EROFS, read-only file system); directories "
                 "that contain it may be moved.\n\n"
                 "Except `keys/old`, `*.pub.pem`; all, as a symlink, if it "
                 "existed when the transaction began.\n\n"
                 "Why: nothing brings them back.\n"
                 "Instead: ask for a new one.\n"),
      std::string::npos)
      << words;
}

TEST(WordsTest, DoNotTellWhichProgramMayDoIt) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "keys"
path = "*.pem"
unless = [{ exe = "/usr/bin/rotate" }, { path = "keys/old", uid = 4711 }]
reason = "r"
suggest = "s"

[[fs]]
id = "theirs"
path = "x"
exe = "/usr/bin/agent"
uid = 4711
reason = "r"
suggest = "s"
)");
  for (const char* secret : {"rotate", "keys/old", "4711", "bin/agent"}) {
    EXPECT_EQ(words.find(secret), std::string::npos) << words;
  }
  EXPECT_NE(words.find("Applies to `x`, for some programs or users: all"),
            std::string::npos)
      << words;
}

TEST(WordsTest, TellWhatALimitAllows) {
  const std::string words = WordsOf(R"(
[[limit]]
id = "mass-deletion"
of = "base_removed"
max = 50
fraction = 0.3
path = "src/"
unless = { path = "src/generated/" }
at = "commit"
reason = "much is lost at once"
suggest = "ask first"

[[limit]]
id = "flood"
of = "bytes_written"
max = "2 GiB"
window = 10
reason = "the disk is not only yours"
suggest = "write less"

[[limit]]
id = "noted"
of = "inodes_made"
max = 5
action = "audit"
reason = "r"
suggest = "s"
)");
  EXPECT_TRUE(words.ends_with(R"(
## mass-deletion

A limit on files and directories that existed when the transaction began and are removed in the transaction, in `src/`: 50, or 30 % of them where that is more; not counted: `src/generated/`. A user must accept a commit that exceeds it.

Why: much is lost at once.
Instead: ask first.

## flood

A limit on content that is written within 10 s: 2 GiB (EDQUOT, quota exceeded).

Why: the disk is not only yours.
Instead: write less.
)")) << words;
  EXPECT_EQ(words.find("No rule is in force"), std::string::npos);
}

TEST(WordsTest, LeaveOutWhatIsOnlyNoted) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "noted"
path = "x"
action = "audit"
reason = "r"
suggest = "s"
)");
  EXPECT_EQ(words.find("## noted"), std::string::npos);
  EXPECT_EQ(words.find("No rule is in force"), std::string::npos);
  EXPECT_NE(words.find("No rule refuses anything; some rules record "
                       "operations."),
            std::string::npos);
  EXPECT_NE(WordsOf("").find("No rule is in force: nothing is refused."),
            std::string::npos);
}

TEST(WordsTest, CountRulesAboutCommands) {
  const std::string rule = R"(
[[exec]]
id = "one"
program = "rm"
reason = "r"
suggest = "s"
)";
  const std::string words = WordsOf(rule);
  EXPECT_NE(words.find("# Commands\n\n1 rule judges commands before they run"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("No rule is in force: nothing is refused."),
            std::string::npos);
  EXPECT_EQ(WordsOf("").find("# Commands"), std::string::npos);
}

TEST(WordsTest, TextsCannotBecomeAnythingElse) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "odd"
path = "a`b"
reason = "see <b>[this](http://x)*`c`"
suggest = "a\\b"
)");
  EXPECT_NE(words.find("Applies to `a?b`: all"), std::string::npos) << words;
  EXPECT_NE(words.find("Why: see \\<b>\\[this](http://x)\\*\\`c\\`.\n"
                       "Instead: a\\\\b.\n"),
            std::string::npos)
      << words;
}

}  // namespace
}  // namespace txfs::policy
