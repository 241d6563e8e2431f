#include "policy/words.h"

#include <gtest/gtest.h>

#include "policy/load.h"

namespace txfs::policy {
namespace {

std::string WordsOf(const std::string& text) {
  const auto loaded = Load("schema = 1\n" + text, "rules.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  return loaded ? InWords(loaded->rules, loaded->limits) : "";
}

TEST(WordsTest, TellWhatWhyAndWhatInsteadButNoException) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "keys"
path = ["*.pem", "keys/"]
ops = ["content", "unlink"]
layer = "base"
unless = { exe = "/usr/bin/rotate", path = "keys/old" }
errno = "EROFS"
reason = "nothing brings them back"
suggest = "ask for a new one"
)");
  EXPECT_NE(
      words.find("\n## keys\n\n"
                 "Of `*.pem`, `keys/`, where it was there when the transaction "
                 "began: content, unlink (EROFS, read-only file system).\n\n"
                 "Why: nothing brings them back.\n"
                 "Instead: ask for a new one.\n"),
      std::string::npos)
      << words;
  EXPECT_EQ(words.find("rotate"), std::string::npos);
  EXPECT_EQ(words.find("keys/old"), std::string::npos);
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

A limit of files and directories that were there when the transaction began and are removed in the transaction, of `src/`: 50, or 30 % of them where that is more. With more, whoever commits has to accept it first.

Why: much is lost at once.
Instead: ask first.

## flood

A limit of content that is written within 10 s: 2 GiB (EDQUOT, quota exceeded).

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
  EXPECT_EQ(words.find("noted"), std::string::npos);
  EXPECT_NE(words.find("No rule is in force"), std::string::npos);
}

TEST(WordsTest, APatternCannotBecomeAnythingElse) {
  const std::string words = WordsOf(R"(
[[fs]]
id = "odd"
path = "a`b\nc"
reason = "r"
suggest = "s"
)");
  EXPECT_NE(words.find("Of `a?b?c`: all"), std::string::npos) << words;
}

}  // namespace
}  // namespace txfs::policy
