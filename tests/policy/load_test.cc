#include "policy/load.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace txfs::policy {
namespace {

constexpr const char* kWhole = R"(schema = 1
policy_version = "2026-11"

[defaults]
errno = "EROFS"

[[fs]]
id = "git-hooks"
ops = ["make", "content", "unlink"]
path = ["**/.git/hooks/**"]
layer = "any"
exe = "sh"
uid = [0, 1000]
unless = { exe = "/usr/bin/git", path = "**/*.sample" }
action = "audit"
errno = "EPERM"
reason = "git runs what is there"
suggest = "say what you want to run"
nocase = true
match = ["write .git/hooks/pre-commit", "create sub/.GIT/hooks/x"]
not_match = ["write src/hooks/x", "rmdir .git/hooks/old"]

[[fs]]
id = "secrets"
path = ".env"
reason = "a secret"
suggest = "use .env.example"
)";

TEST(LoadTest, ReadsWhatARuleCanSay) {
  const auto loaded = Load(kWhole, "p.toml");
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_EQ(loaded->version, "2026-11");
  ASSERT_EQ(loaded->rules.size(), 2U);
  const Rule& hooks = loaded->rules[0];
  EXPECT_EQ(hooks.id, "git-hooks");
  EXPECT_EQ(hooks.ops, MaskOf(Effect::kMake) | MaskOf(Effect::kContent) |
                           MaskOf(Op::kUnlink));
  EXPECT_EQ(hooks.when.paths.size(), 1U);
  EXPECT_EQ(hooks.when.layer, std::nullopt);
  EXPECT_EQ(hooks.when.exes.size(), 1U);
  EXPECT_EQ(hooks.when.uids, (std::vector<uint32_t>{0, 1000}));
  ASSERT_EQ(hooks.unless.size(), 1U);
  EXPECT_EQ(hooks.unless[0].exes.size(), 1U);
  EXPECT_EQ(hooks.unless[0].paths.size(), 1U);
  EXPECT_EQ(hooks.action, Action::kAudit);
  EXPECT_EQ(hooks.error, EPERM);
  EXPECT_EQ(hooks.reason, "git runs what is there");
  EXPECT_EQ(hooks.place.ToString(), "p.toml:7");
  const Rule& secrets = loaded->rules[1];
  EXPECT_EQ(secrets.ops, kEverything);
  EXPECT_EQ(secrets.action, Action::kDeny);
  EXPECT_EQ(secrets.error, EROFS);
  EXPECT_EQ(secrets.place.line, 23U);
}

/// The message for a file with one rule to which `lines` are added.
std::string WhyNot(const std::string& lines) {
  const auto loaded = Load(
      "schema = 1\n[[fs]]\nid = \"one\"\npath = \"a\"\nreason = \"r\"\n"
      "suggest = \"s\"\n" +
          lines,
      "p.toml");
  if (loaded) return "";
  EXPECT_EQ(loaded.error().code, EINVAL);
  return loaded.error().message;
}

TEST(LoadTest, SaysWhereAndWhatIsWrongAndWhatIsExpected) {
  struct Case {
    const char* lines;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"pth = \"b\"",
       "p.toml:7: unknown key \"pth\" in [[fs]]; expected one of "
       "id, ops, path, layer, type, exe, uid, unless, action, at, content, "
       "errno, reason, suggest, nocase, with_directory, match, not_match"},
      {"type = \"link\"",
       "p.toml:7: type of [[fs]] has \"link\"; expected file, directory, "
       "symlink or other"},
      {"with_directory = 0",
       "p.toml:7: with_directory of [[fs]] is not a boolean; "
       "expected true or false"},
      {"layer = \"old\"",
       "p.toml:7: layer of [[fs]] is \"old\"; expected base, "
       "new, empty or any"},
      {"action = \"allow\"",
       "p.toml:7: action of [[fs]] is \"allow\"; expected "
       "deny, ask, hook or audit"},
      {"errno = \"EAGAIN\"",
       "p.toml:7: errno of [[fs]] is \"EAGAIN\"; expected "
       "EPERM, EROFS or EDQUOT"},
      {"nocase = 1",
       "p.toml:7: nocase of [[fs]] is not a boolean; "
       "expected true or false"},
      {"uid = -1",
       "p.toml:7: uid of [[fs]] is not a user id; expected a number, or a "
       "list of numbers"},
      {"exe = []",
       "p.toml:7: exe of [[fs]] is empty or has the wrong type; expected text, "
       "or a list of texts"},
      {"exe = [1]",
       "p.toml:7: exe of [[fs]] has a value that is not text; "
       "expected text, or a list of texts"},
      {"unless = {}",
       "p.toml:7: unless of [[fs]] is empty; expected at least "
       "one of path, layer, type, exe, uid"},
      {"unless = []",
       "p.toml:7: unless of [[fs]] is empty; expected at least "
       "one of path, layer, type, exe, uid"},
      {"unless = [{ uid = 1 }, 2]",
       "p.toml:7: unless of [[fs]] is not a table; expected unless = { path = "
       "..., exe = ... }, or a list of such tables"},
      {"unless = { op = \"x\" }",
       "p.toml:7: unknown key \"op\" in unless of one;"
       " expected one of path, layer, type, exe, uid"},
      {"match = [\"write b\"]",
       "p.toml:7: match of [[fs]] has \"write b\"; "
       "expected an operation that the rule matches"},
      {"not_match = \"write a\"",
       "p.toml:7: not_match of [[fs]] has \"write "
       "a\"; expected an operation that the rule does not match"},
      {"match = \"writes a\"",
       "p.toml:7: match of [[fs]] has \"writes a\"; "
       "expected an operation of txfs log, a space, and "
       "a path"},
      {"[[fs]]\nid = \"one\"\npath = \"b\"\nreason = \"r\"\nsuggest = \"s\"",
       "p.toml:8: id of [[fs]] \"one\" is already used on line 2; expected an "
       "id that no other rule has"},
      {"[[fs]]\nid = \"two\"\npath = \"b\"\nreason = \" \"\nsuggest = \"s\"",
       "p.toml:10: reason of [[fs]] is missing or empty; expected text"},
      {"[[fs]]\nid = \"two\"\nreason = \"r\"\nsuggest = \"s\"",
       "p.toml:7: path of [[fs]] is missing; expected at least one pattern"},
      {"[[fs]]\nid = \"two\"\npath = \"[b\"\nreason = \"r\"\nsuggest = \"s\"",
       "p.toml:9: path of [[fs]] has a pattern \"[b\": a [ has no ]; expected "
       "a "
       "pattern as in .gitignore"},
      {"layer = \"base\"\nops = [\"make\", \"mkdir\"]",
       "p.toml:7: layer of [[fs]] is \"base\", but all its ops make new names; "
       "expected ops on existing files, or another layer"},
      {"ops = \"create\"\nunless = { layer = \"base\" }",
       "p.toml:8: layer of unless of one is \"base\", but all its ops make new "
       "names; expected ops on existing files, or another layer"},
      {"layer = \"base\"\nmatch = [\"unlink a\",\n\"create a\"]",
       "p.toml:8: match of [[fs]] has \"create a\"; expected an operation "
       "on the base; a new file is not in it"},
      {"unless = { layer = \"new\" }\nmatch = \"create a\"",
       "p.toml:8: match of [[fs]] has \"create a\"; expected an operation "
       "that the rule matches"},
      {"[[open]]\nid = \"x\"",
       "p.toml:7: unknown key \"open\" in the file; expected one of schema, "
       "policy_version, defaults, ask, hook, fs, exec, limit"},
  };
  for (const Case& one : kCases) EXPECT_EQ(WhyNot(one.lines), one.message);
  EXPECT_EQ(WhyNot("layer = \"base\"\nops = [\"make\", \"link\"]"), "")
      << "a link is an attribute of its other names";
  EXPECT_EQ(
      WhyNot("ops = \"delete\"")
          .find("p.toml:7: ops of [[fs]] has \"delete\"; expected any of make, "
                "remove, content, attributes, read, create"),
      0U);
}

TEST(LoadTest, RefusesTextsThatAreNotWhatTheyLookLike) {
  const auto rule = [](const std::string& reason, const std::string& path) {
    return "[[fs]]\nid = \"two\"\npath = \"" + path + "\"\nreason = \"" +
           reason + "\"\nsuggest = \"s\"";
  };
  for (const char* hidden :
       {"\\n", "\\t", "\\u001b", "\\u007f", "\\u0085", "\\u200b", "\\u2028",
        "\\u202e", "\\u2066", "\\ufeff"}) {
    EXPECT_EQ(WhyNot(rule("It is" + std::string(hidden) + "so", "b")),
              "p.toml:10: reason of [[fs]] has an invisible character; "
              "expected one line, without control characters")
        << hidden;
    EXPECT_EQ(WhyNot(rule("r", "b" + std::string(hidden))),
              "p.toml:9: path of [[fs]] has an invisible character; "
              "expected one line, without control characters")
        << hidden;
  }
  EXPECT_EQ(WhyNot(rule(std::string(1001, 'r'), "b")),
            "p.toml:10: reason of [[fs]] has 1001 bytes; expected 1000 at "
            "most");
  EXPECT_EQ(WhyNot(rule("Gr\u00fc\u00dfe \u2013 \U0001F600", "\u00e9*")), "");
}

TEST(LoadTest, AnExampleOfARenameIsAboutWhatTheRuleIsAbout) {
  const std::string link = "type = \"symlink\"\nops = \"make\"\n";
  EXPECT_EQ(WhyNot(link + "match = [\"symlink a\", \"rename a\", \"link a\", "
                          "\"exchange a\"]\n"
                          "not_match = [\"mkdir a\", \"create a\", "
                          "\"mknod a\", \"unlink a\"]"),
            "");
  EXPECT_EQ(WhyNot("ops = \"remove\"\nlayer = \"base\"\n"
                   "match = \"rename a\"\nnot_match = \"create a\""),
            "");
}

TEST(LoadTest, RefusesWhatIsNoPolicy) {
  constexpr std::pair<const char*, const char*> kCases[] = {
      {"", "p.toml:1: schema of the file is missing; "},
      {"schema = 2", "p.toml:1: schema of the file is 2; "},
      {"schema = \"1\"",
       "p.toml:1: schema of the file is not a number; expected schema = 1, a "
       "number: "},
      {"schema = 1\nfs = 1",
       "p.toml:2: fs of the file is not a list of tables; "},
      {"schema = 1\n[;x]", "p.toml:2: not valid TOML: "},
      {"schema = 1\n[[;x]]", "p.toml:2: not valid TOML: "},
      {"schema = 1\nfs = []x", "p.toml:2: not valid TOML: "},
  };
  for (const auto& [text, message] : kCases) {
    const auto loaded = Load(text, "p.toml");
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().message.find(message), 0U)
        << loaded.error().message;
  }
}

TEST(LoadTest, RefusesWhatIsTooDeep) {
  std::string dotted = "a";
  for (int i = 0; i < 900; ++i) dotted += ".a";
  for (const std::string& value :
       {"x = " + std::string(150, '[') + std::string(150, ']'), dotted + " = 1",
        "[" + dotted + "]", "x = {" + dotted + " = [1]}"}) {
    const auto loaded = Load("schema = 1\n" + value, "p.toml");
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().message.find("p.toml:2: too deep; "), 0U)
        << loaded.error().message;
  }
}

}  // namespace
}  // namespace txfs::policy
