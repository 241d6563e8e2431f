#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "policy/builtin.h"
#include "policy/exec_rule.h"
#include "policy/load.h"
#include "policy/sources.h"
#include "tests/repeat.h"

namespace txfs::policy {
namespace {

/// Whether the pattern `pattern` matches `text`.
bool TextMatches(const std::string& pattern, const std::string& text,
                 bool nocase = false) {
  const auto parsed = TextPattern::Parse(pattern);
  return parsed && parsed->Matches(text, nocase);
}

TEST(ExecTest, APatternMatchesAWholeText) {
  EXPECT_TRUE(TextMatches("a*c", "abbc"));
  EXPECT_TRUE(TextMatches("*", ""));
  EXPECT_TRUE(TextMatches("of=/dev/*", "of=/dev/disk/by-id/x"));
  EXPECT_TRUE(TextMatches("[a-c]?[!x]", "bzy"));
  EXPECT_TRUE(TextMatches("[]]", "]"));
  EXPECT_TRUE(TextMatches("\\[", "["));
  EXPECT_TRUE(TextMatches("drop*", "DROP TABLE", true));
  EXPECT_FALSE(TextMatches("a", "ab"));
  EXPECT_FALSE(TextMatches("a*b", "a"));
  EXPECT_FALSE(TextMatches("[!x]", "x"));
  EXPECT_FALSE(TextMatches("drop*", "DROP TABLE"));
  for (const char* wrong : {"", "[a", "a\\", "[", "[!"}) {
    EXPECT_FALSE(TextPattern::Parse(wrong)) << wrong;
  }
}

TEST(ExecTest, APatternTakesTimeInProportion) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  EXPECT_FALSE(TextMatches(pattern + "b", std::string(20'000, 'a')));
}

TEST(ExecTest, APathHasAPlace) {
  const Surroundings& around = ExampleSurroundings();
  struct Case {
    const char* text;
    Region region;
  };
  for (const auto& [text, region] :
       std::initializer_list<Case>{{"a", Region::kWorkspace},
                                   {".", Region::kWorkspace},
                                   {"..", Region::kRoot},
                                   {"../x", Region::kHome},
                                   {"/", Region::kRoot},
                                   {"/*", Region::kRoot},
                                   {"/home/*", Region::kRoot},
                                   {"/home/other", Region::kRoot},
                                   {"/home/other/x", Region::kHome},
                                   {"/root", Region::kRoot},
                                   {"~/x", Region::kHome},
                                   {"*", Region::kWorkspace},
                                   {"/tmp/a/../b", Region::kTemporary},
                                   {"/tmp/../etc", Region::kOutside},
                                   {"/dev/sda", Region::kDevice},
                                   {"/dev/null", Region::kTemporary},
                                   {"of=/dev/sda", Region::kDevice},
                                   {"--output=/etc/x", Region::kOutside},
                                   {"file=@/etc/x", Region::kOutside},
                                   {"-o/etc/x", Region::kOutside},
                                   {"file:///etc/x", Region::kOutside},
                                   {"/home/user/project/x", Region::kWorkspace},
                                   {"/home/user/projects", Region::kHome}}) {
    const auto path = PathIn(KnownWord(text), around.workspace, around);
    ASSERT_TRUE(path) << text;
    EXPECT_EQ(NameOf(path->region), NameOf(region)) << text;
  }
  for (const char* text : {"https://example.org/a", "host:/etc", "-rf",
                           "--force", "s3://bucket"}) {
    EXPECT_FALSE(PathIn(KnownWord(text), around.workspace, around)) << text;
  }
}

TEST(ExecTest, WhatIsNotKnownOfAPathIsANameInTheDirectoryBefore) {
  const Surroundings& around = ExampleSurroundings();
  const auto place = [&](const char* text, size_t prefix) {
    const Word word{.text = text, .known = false, .known_prefix = prefix};
    const auto path = PathIn(word, around.workspace, around);
    return std::string(path ? NameOf(path->region) : "none");
  };
  EXPECT_EQ(place("/tmp/$X", 5), "temp");
  EXPECT_EQ(place("/etc/a$X", 6), "outside");
  EXPECT_EQ(place("/$X", 1), "unknown");
  EXPECT_EQ(place("$X/a", 0), "unknown");
  EXPECT_EQ(place("build/$X", 6), "workspace");
}

/// A file with one rule: `lines`, and what is required.
std::string RuleOf(const std::string& lines) {
  return "schema = 1\n[[exec]]\nid = \"x\"\nreason = \"r\"\nsuggest = "
         "\"s\"\n" +
         lines;
}

bool RuleMatches(const std::string& lines, const std::string& command) {
  auto loaded = Load(RuleOf(lines), "p.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  auto words = SimpleWords(command);
  if (!loaded || !words) return false;
  Command one;
  one.program = words->front();
  one.arguments.assign(words->begin() + 1, words->end());
  one.directory = ExampleSurroundings().workspace;
  FindPaths(one, ExampleSurroundings());
  return Matches(loaded->exec_rules[0], one, ExampleSurroundings());
}

TEST(ExecTest, AnOptionMatchesHoweverItIsWritten) {
  const std::string rule = "program = \"p\"\nany_arg = [\"-f\", \"--force\"]";
  for (const char* command : {"p -f", "p -xf", "p -fx a", "p --force", "p a -f",
                              "p --force=true", "p --forc", "/usr/bin/p -f"}) {
    EXPECT_TRUE(RuleMatches(rule, command)) << command;
  }
  for (const char* command : {"p", "p f", "p -- -f", "p --follow", "p -x",
                              "q -f", "p --forceful", "p --f-x", "p -f1"}) {
    EXPECT_FALSE(RuleMatches(rule, command)) << command;
  }
  const std::string value = "program = \"p\"\nany_arg = \"--prune=now\"";
  EXPECT_TRUE(RuleMatches(value, "p --prune=now"));
  EXPECT_TRUE(RuleMatches(value, "p --prun=now"));
  EXPECT_FALSE(RuleMatches(value, "p --prun=1.day"));
  EXPECT_FALSE(RuleMatches(value, "p --prun"));
  EXPECT_TRUE(RuleMatches(value, "p --prune now"));
  EXPECT_FALSE(RuleMatches(value, "p --prune 1.day now"));
  EXPECT_FALSE(RuleMatches(value, "p -- --prune now"));
  EXPECT_FALSE(RuleMatches("program = \"p\"\nunless = { any_arg = \"-h=x\" }",
                           "p -h x"));
  EXPECT_FALSE(RuleMatches(
      "program = \"p\"\nunless = { any_arg = \"--dry-run\" }", "p --dry-run"));
  EXPECT_TRUE(RuleMatches(
      "program = \"p\"\nunless = { any_arg = \"--dry-run\" }", "p --dry"))
      << "an abbreviation is no exception";
}

TEST(ExecTest, TheDirectoryOfGitIsNoOptionOfASubcommand) {
  const std::string rule = "program = \"git\"\nany_arg = \"-C\"";
  EXPECT_FALSE(RuleMatches(rule, "git -C a -C b switch c"));
  EXPECT_TRUE(RuleMatches(rule, "git -C a switch -C c"));
}

TEST(ExecTest, TheTargetOfACopyIsTheLastPath) {
  const std::string rule =
      "program = [\"cp\", \"dd\"]\noperand = \"last\"\npath = \"~/t/**\"";
  for (const char* command : {"cp a ~/t/b", "cp -t ~/t/b a", "cp -vt ~/t/b a",
                              "cp --target-directory=/home/user/t/b a",
                              "dd of=/home/user/t/b if=a"}) {
    EXPECT_TRUE(RuleMatches(rule, command)) << command;
  }
  for (const char* command :
       {"cp ~/t/b a", "cp -t a ~/t/b", "dd of=a if=/home/user/t/b"}) {
    EXPECT_FALSE(RuleMatches(rule, command)) << command;
  }
}

TEST(ExecTest, ACommandMaySendAWholeHome) {
  const std::string rule = "program = \"rsync\"\nreads = \"~\"";
  EXPECT_TRUE(RuleMatches(rule, "rsync -a ~ h:"));
  EXPECT_TRUE(RuleMatches(rule, "rsync -a / h:"));
  EXPECT_FALSE(RuleMatches(rule, "rsync -a ~/a h:"));
  EXPECT_FALSE(RuleMatches(rule, "rsync -a h:a ~"));
  EXPECT_FALSE(RuleMatches(rule, "rsync -a ~ /mnt/a"));
}

TEST(ExecTest, AConditionThatAllRowsMeetIsNone) {
  const std::string rule =
      "program = \"p\"\nsql = \"delete from *\"\nnocase = true\n"
      "unless = { sql = \"* where *\" }";
  for (const char* command :
       {"p 'delete from a where true'", "p 'DELETE FROM a WHERE 1 = 1'",
        "p 'delete from a where 1=1 or b=2'",
        "p 'delete from a where b=2 or 1=1'", "p 'delete from a where (1)'"}) {
    EXPECT_TRUE(RuleMatches(rule, command)) << command;
  }
  for (const char* command :
       {"p 'delete from a where b = 1'", "p 'delete from a where true_ = 1'",
        "p 'delete from a where b = 1 or c = 2'"}) {
    EXPECT_FALSE(RuleMatches(rule, command)) << command;
  }
}

TEST(ExecTest, ASubcommandIsFoundBehindOptionsAndTheirValues) {
  const std::string rule = "program = \"p\"\nsubcommand = \"a b\"";
  for (const char* command : {"p a b", "p -x a b", "p -x v a -y b",
                              "p a -q b c", "p --opt=v a b", "p --opt v a b"}) {
    EXPECT_TRUE(RuleMatches(rule, command)) << command;
  }
  for (const char* command : {"p a", "p b a", "p c a b", "p a c b"}) {
    EXPECT_FALSE(RuleMatches(rule, command)) << command;
  }
}

TEST(ExecTest, AVerbIsNoName) {
  const std::string rule =
      "program = \"p\"\nverb = [\"delete\", \"rm\", \"!logs\"]";
  for (const char* text :
       {"p delete", "p disk delete x", "p --quiet a b rm", "p -n x delete y",
        "p --project x a delete", "p --unknown delete"}) {
    EXPECT_TRUE(RuleMatches(rule, text)) << text;
  }
  for (const char* text :
       {"p get delete", "p describe-x delete", "p logs delete",
        "p -n delete get", "p a --name delete", "p a -- delete",
        "p a b c d e f delete"}) {
    EXPECT_FALSE(RuleMatches(rule, text)) << text;
  }
}

TEST(ExecTest, AnExceptionIsSureOfItsOption) {
  const std::string rule =
      "program = \"p\"\nunless = { any_arg = [\"-n\", \"--dry-run\", "
      "\"list\", \"*_test\"] }";
  for (const char* text : {"p -n", "p -xfn", "p --dry-run=client", "p list",
                           "p -y list", "p app_test"}) {
    EXPECT_FALSE(RuleMatches(rule, text)) << text;
  }
  for (const char* text :
       {"p -Pcentral", "p --dry-run=false", "p --dry-run=none", "p -L list",
        "p -n --no-dry-run", "p 'drop table a_test'"}) {
    EXPECT_TRUE(RuleMatches(rule, text)) << text;
  }
}

TEST(ExecTest, AStatementHasNoLiteralsAndNoComments) {
  const std::string rule =
      "program = \"p\"\nnocase = true\nsql = \"*delete from *\"\n"
      "unless = { sql = \"* where *\" }";
  for (const char* text :
       {"p 'DELETE FROM a'", "p 'delete from a; select 1 where b'",
        "p --command='delete from a'"}) {
    EXPECT_TRUE(RuleMatches(rule, text)) << text;
  }
  for (const char* text :
       {"p 'delete from a where b'", "p \"select 'delete from a'\"",
        "p 'select 1 -- delete from a'", "p 'select /* delete from a */ 1'"}) {
    EXPECT_FALSE(RuleMatches(rule, text)) << text;
  }
}

TEST(ExecTest, AReadOnlyRuleKnowsItsProgramAndDoubtsItsOptions) {
  const std::string rule =
      "program = \"p\"\nread_only = true\nunless = { any_arg = [\"-i\", "
      "\"--output\"] }";
  for (const char* text : {"p", "/bin/p", "/usr/bin/p -n", "p x"}) {
    EXPECT_TRUE(RuleMatches(rule, text)) << text;
  }
  for (const char* text :
       {"./p", "/tmp/p", "p -Ei", "p --outp=x", "/home/user/project/p"}) {
    EXPECT_FALSE(RuleMatches(rule, text)) << text;
  }
}

TEST(ExecTest, AModeAndAnOwnerAreNoPaths) {
  const std::string rule =
      "program = [\"chmod\", \"chown\"]\n"
      "place = \"workspace\"";
  EXPECT_FALSE(RuleMatches(rule, "chmod 644 /etc/x"));
  EXPECT_FALSE(RuleMatches(rule, "chmod -x /etc/x"));
  EXPECT_FALSE(RuleMatches(rule, "chown -R me /etc/x"));
  EXPECT_TRUE(RuleMatches(rule, "chmod u+x a"));
}

TEST(ExecTest, AnExceptionByPlaceIsOneForAllOperands) {
  const std::string rule = "program = \"p\"\nunless = { place = \"temp\" }";
  EXPECT_FALSE(RuleMatches(rule, "p /tmp/a /tmp/b"));
  EXPECT_TRUE(RuleMatches(rule, "p /tmp/a b"));
  EXPECT_TRUE(RuleMatches(rule, "p"));
  const std::string last =
      "program = \"p\"\noperand = \"last\"\npath = \"~/.x\"";
  EXPECT_TRUE(RuleMatches(last, "p a ~/.x"));
  EXPECT_FALSE(RuleMatches(last, "p ~/.x a"));
}

TEST(ExecTest, ErrorsSayWhereAndWhatIsExpected) {
  struct Case {
    const char* lines;
    const char* message;
  };
  for (const auto& [lines, message] : std::initializer_list<Case>{
           {"",
            "p.toml:2: program of [[exec]] is missing; expected a program, "
            "or another key of a condition"},
           {"program = \"[\"",
            "p.toml:6: program of [[exec]] has an invalid pattern: a [ has no "
            "]; expected a pattern with *, ? and [a-z]"},
           {"program = \"p\"\nclass = \"safe\"",
            "p.toml:7: class of [[exec]] is \"safe\"; expected undoable, "
            "confined, irreversible or unknown"},
           {"program = \"p\"\naction = \"stop\"",
            "p.toml:7: action of [[exec]] is \"stop\"; expected deny, ask, "
            "hook, audit or allow"},
           {"program = \"p\"\nplace = \"here\"",
            "p.toml:7: place of [[exec]] has \"here\"; expected workspace, "
            "temp, home, device, outside, root or unknown"},
           {"program = \"p\"\noperand = \"all\"",
            "p.toml:7: operand of [[exec]] is \"all\"; expected any, first or "
            "last"},
           {"program = \"p\"\nscript = \"x\"",
            "p.toml:7: script of [[exec]] has \"x\"; expected input, code, "
            "unknown or none"},
           {"program = \"p\"\nunless = {}",
            "p.toml:7: unless of [[exec]] is empty; expected at least one key "
            "of a condition"},
           {"program = \"p\"\nmatch = \"q\"",
            "p.toml:7: match of [[exec]] has \"q\"; expected a command that "
            "the rule matches"},
           {"program = \"p\"\nnot_match = \"p a\"",
            "p.toml:7: not_match of [[exec]] has \"p a\"; expected a command "
            "that the rule does not match"}}) {
    const auto loaded = Load(RuleOf(lines), "p.toml");
    ASSERT_FALSE(loaded) << lines;
    EXPECT_EQ(loaded.error().message, message);
  }
}

TEST(ExecTest, AnExampleThatNeedsAParserIsLeftToIt) {
  EXPECT_TRUE(Load(RuleOf("program = \"p\"\nmatch = \"q | r\""), "p.toml"));
  for (const char* text : {"a | b", "a $X", "a `b`", "a > b", "A=b c", "a 'b",
                           "a \"$b\"", "a *", ""}) {
    EXPECT_FALSE(SimpleWords(text)) << text;
  }
  const auto words = SimpleWords("a  'b c' d\"e\" ~/f");
  ASSERT_TRUE(words);
  ASSERT_EQ(words->size(), 4U);
  EXPECT_EQ((*words)[1].text, "b c");
  EXPECT_EQ((*words)[2].text, "de");
  EXPECT_EQ((*words)[3].text, "/home/user/f");
}

TEST(ExecTest, TheClassDecidesWhereAnActionHolds) {
  using enum Confinement;
  EXPECT_EQ(Soften(Action::kDeny, Class::kUndoable, kNone), Action::kDeny);
  EXPECT_EQ(Soften(Action::kDeny, Class::kUndoable, kMount), Action::kAllow);
  EXPECT_EQ(Soften(Action::kAsk, Class::kConfined, kMount), Action::kAsk);
  EXPECT_EQ(Soften(Action::kAsk, Class::kConfined, kRun), Action::kAllow);
  EXPECT_EQ(Soften(Action::kAsk, Class::kUnknown, kMount), Action::kAsk);
  EXPECT_EQ(Soften(Action::kAsk, Class::kUnknown, kRun), Action::kAllow);
  EXPECT_EQ(Soften(Action::kAsk, Class::kIrreversible, kRun), Action::kAsk);
  EXPECT_EQ(Soften(Action::kAudit, Class::kUndoable, kRun), Action::kAudit);
}

TEST(ExecTest, EachBuiltinRuleHasExamplesOfBothKindsAndCanBeLeftOut) {
  const auto policy =
      LoadSources({.builtin = true, .files = {}, .examples = true}, -1);
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_GE((*policy)->exec_rules().size(), 70U);
  Picks picks(FirstSeed());
  uint64_t number = 0;
  uint64_t left_out = picks.Next();
  for (const ExecRule& rule : (*policy)->exec_rules()) {
    EXPECT_TRUE(rule.id.starts_with("txfs-cmd-")) << rule.id;
    EXPECT_TRUE(rule.examples.front().matches) << rule.id;
    EXPECT_FALSE(rule.examples.back().matches) << rule.id;
    if (++number != left_out) continue;
    left_out = picks.Next();
    const auto rest =
        LoadSources({.builtin = true, .without = {rule.id}, .files = {}}, -1);
    ASSERT_TRUE(rest) << rule.id;
    EXPECT_EQ((*rest)->exec_rules().size() + 1, (*policy)->exec_rules().size());
  }
}

}  // namespace
}  // namespace txfs::policy
