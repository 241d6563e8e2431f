#include "policy/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policy/lint.h"
#include "policy/load.h"
#include "policy/sources.h"

namespace txfs::policy {
namespace {

std::vector<Rule> RulesIn(const std::string& text) {
  auto loaded = Load("schema = 1\n" + text, "p.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  return loaded ? std::move(loaded->rules) : std::vector<Rule>();
}

/// A rule `id` with the further `lines`.
std::string A(const std::string& id, const std::string& lines) {
  return "[[fs]]\nid = \"" + id + "\"\nreason = \"r\"\nsuggest = \"s\"\n" +
         lines + "\n";
}

std::string Decider(const Policy& policy, const Proposal& proposal) {
  const Verdict verdict = Explain(policy, proposal).verdict;
  return verdict.rule == nullptr ? "" : verdict.rule->id;
}

TEST(ExplainTest, JudgesBothEnds) {
  const Policy policy(
      RulesIn(A("made", "path = \"m\"\nops = [\"make\"]") +
              A("removed", "path = \"r\"\nops = [\"remove\"]") +
              A("altered", "path = \"a\"\nops = [\"attributes\"]") +
              A("noted", "path = \"n\"\naction = \"audit\"")));
  const auto decider = [&](Op op, const char* path, const char* new_path) {
    return Decider(policy, {.op = op, .path = path, .new_path = new_path});
  };
  EXPECT_EQ(decider(Op::kRename, "x", "m"), "made");
  EXPECT_EQ(decider(Op::kRename, "r", "x"), "removed");
  EXPECT_EQ(decider(Op::kRename, "x", "r"), "removed") << "it is replaced";
  EXPECT_EQ(decider(Op::kRename, "m", "x"), "");
  EXPECT_EQ(decider(Op::kExchange, "m", "x"), "made");
  EXPECT_EQ(decider(Op::kLink, "a", "x"), "altered");
  EXPECT_EQ(decider(Op::kLink, "x", "m"), "made");
  EXPECT_EQ(decider(Op::kRename, "n", "m"), "made");
  EXPECT_EQ(decider(Op::kRename, "n", "x"), "noted");
}

TEST(ExplainTest, NamesEachRuleOnceForEachName) {
  const Policy policy(RulesIn(A("all", "path = [\"a\", \"b\"]")));
  const Explanation explanation =
      Explain(policy, {.op = Op::kExchange, .path = "a", .new_path = "b"});
  ASSERT_EQ(explanation.matches.size(), 2U);
  EXPECT_EQ(explanation.matches[0].path, "a");
  EXPECT_EQ(explanation.matches[1].path, "b");
}

/// A limit `id` with the further `lines`.
std::string L(const std::string& id, const std::string& lines) {
  return "[[limit]]\nid = \"" + id + "\"\nreason = \"r\"\nsuggest = \"s\"\n" +
         lines + "\n";
}

TEST(ExplainTest, SaysWhatItCountsTowards) {
  const std::string removed = "of = \"base_removed\"\nmax = 1\n";
  auto loaded =
      Load("schema = 1\n" + L("gone", removed + "unless = { path = \"x/\" }") +
               L("late", removed + "at = \"commit\"") +
               L("made", "of = \"inodes_made\"\nmax = 1") +
               L("bytes", "of = \"bytes_written\"\nmax = 1\nwindow = 9"),
           "p.toml");
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  const Policy policy({}, 1, std::move(loaded->limits));
  const auto counted = [&](const Proposal& proposal) {
    std::string ids;
    for (const Limit* limit : Explain(policy, proposal).limits) {
      ids += (ids.empty() ? "" : " ") + limit->id;
    }
    return ids;
  };
  EXPECT_EQ(counted({.op = Op::kUnlink, .path = "a"}), "gone late");
  EXPECT_EQ(counted({.op = Op::kRmdir, .path = "a"}), "gone late");
  EXPECT_EQ(counted({.op = Op::kUnlink, .path = "x/a"}), "late");
  EXPECT_EQ(counted({.op = Op::kUnlink, .path = "a", .layer = Layer::kNew}),
            "");
  EXPECT_EQ(counted({.op = Op::kRename, .path = "a"}), "");
  // What it replaces goes, but its path does not.
  EXPECT_EQ(counted({.op = Op::kRename, .path = "a", .new_path = "b"}), "gone");
  EXPECT_EQ(counted({.op = Op::kRename, .path = "a", .new_path = "x/b"}), "");
  EXPECT_EQ(counted({.op = Op::kRename,
                     .path = "a",
                     .new_path = "b",
                     .layer = Layer::kNew}),
            "gone");
  EXPECT_EQ(counted({.op = Op::kExchange, .path = "a", .new_path = "b"}), "");
  EXPECT_EQ(counted({.op = Op::kLink, .path = "a", .new_path = "b"}), "");
  for (const Op op : {Op::kCreate, Op::kMkdir, Op::kMknod, Op::kSymlink}) {
    EXPECT_EQ(counted({.op = op, .path = "a"}), "made") << NameOf(op);
  }
  EXPECT_EQ(counted({.op = Op::kWrite, .path = "a"}), "bytes");
  for (const Op op : {Op::kTruncate, Op::kAllocate, Op::kChmod}) {
    EXPECT_EQ(counted({.op = op, .path = "a"}), "") << NameOf(op);
  }
}

/// What there is to warn of, a line each.
std::string Linted(const std::string& text) {
  const auto loaded = Load("schema = 1\n" + text, "p.toml");
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  if (!loaded) return "";
  std::string all;
  for (const Warning& warning :
       Lint(loaded->rules, loaded->limits, loaded->exec_rules)) {
    all += std::to_string(warning.place.line) + ": " + warning.message + "\n";
  }
  return all;
}

TEST(LintTest, WarnsOfWhatIsCertain) {
  const std::string example = "\nmatch = \"write a\"";
  EXPECT_EQ(Linted(A("good", "path = \"a\"" + example)), "");
  EXPECT_EQ(Linted(A("bare", "path = \"a\"")),
            "2: rule bare has no examples: add match and not_match\n");
  EXPECT_EQ(
      Linted(A("wide", "path = [\"a\", \"b\"]" + example) +
             A("narrow", "path = \"a\"\nops = [\"write\"]" + example)),
      "8: rule narrow never decides: wide (p.toml:2) matches everything that "
      "it matches\n");
  EXPECT_EQ(
      Linted(A("noted", "path = \"a\"\naction = \"audit\"" + example) +
             A("denied", "path = \"a\"" + example)),
      "2: rule noted never decides: denied (p.toml:9) matches everything that "
      "it matches\n");
}

TEST(LintTest, IsSilentWhereARuleMayDecide) {
  const std::string example = "\nmatch = \"write a\"";
  const std::string narrow = A("narrow", "path = \"a\"" + example);
  for (const char* less :
       {"layer = \"base\"", "exe = \"sh\"", "uid = 1", "unless = { uid = 1 }",
        "nocase = true", "ops = [\"write\"]", "action = \"audit\""}) {
    EXPECT_EQ(Linted(A("wide", "path = \"a\"\n" + std::string(less) + example) +
                     narrow),
              std::string(less).starts_with("action")
                  ? "2: rule wide never decides: narrow (p.toml:9) matches "
                    "everything that it matches\n"
                  : "")
        << less;
  }
}

/// A rule about commands; seven lines with one more.
std::string E(const std::string& id, const std::string& more) {
  return "[[exec]]\nid = \"" + id + "\"\nreason = \"r\"\nsuggest = \"s\"\n" +
         more + "\n";
}

TEST(LintTest, WarnsOfRulesAboutCommands) {
  const std::string example = "\nmatch = \"rm -r x\"";
  const std::string narrow = E("narrow",
                               "program = \"rm\"\nany_arg = \"-r\""
                               "\nplace = \"workspace\"" +
                                   example);
  EXPECT_EQ(Linted(narrow), "");
  EXPECT_EQ(Linted(E("bare", "program = \"rm\"")),
            "2: rule bare has no examples: add match and not_match\n");
  const std::string never =
      ": rule narrow never decides: wide (p.toml:2) matches everything that it "
      "matches\n";
  // The same again, too.
  for (const char* wide :
       {"program = \"rm\"", "program = [\"rmdir\", \"rm\"]",
        "any_arg = [\"-f\", \"-r\"]", "place = [\"workspace\", \"temp\"]",
        "program = \"rm\"\nany_arg = \"-r\"\nplace = \"workspace\""}) {
    const std::string first = E("wide", wide + example);
    const auto line = 1 + std::ranges::count(first, '\n') + 1;
    EXPECT_EQ(Linted(first + narrow), std::to_string(line) + never) << wide;
  }
  // What is allowed is refused all the same.
  EXPECT_EQ(
      Linted(E("wide", "program = \"rm\"" + example) +
             E("narrow", "program = \"rm\"\naction = \"allow\"" + example)),
      "8" + never);
}

TEST(LintTest, IsSilentWhereARuleAboutCommandsMayDecide) {
  const std::string example = "\nmatch = \"rm -r x\"";
  const std::string narrow = E("narrow", "program = \"rm\"" + example);
  for (const char* less :
       {"any_arg = \"-r\"", "all_args = [\"-r\", \"x\"]",
        "place = \"workspace\"", "path = \"x\"", "subcommand = \"x\"",
        "verb = \"x\"", "text = \"x\"", "operands = true",
        "unless = { any_arg = \"-i\" }", "nocase = true",
        "class = \"undoable\"", "class = \"confined\"", "action = \"ask\"",
        "read_only = true\naction = \"allow\""}) {
    const std::string wide =
        E("wide", "program = \"rm\"\n" + std::string(less) + example);
    const std::string linted = Linted(wide + narrow);
    EXPECT_EQ(linted.find("rule narrow"), std::string::npos) << linted << less;
  }
  // Of what only some commands have.
  for (const char* more :
       {"program = \"rm\"\nreads = \"x\"", "program = \"rm\"\nfed_by = \"x\"",
        "program = \"rm\"\nclass = \"irreversible\"\nremote = true"}) {
    EXPECT_EQ(
        Linted(E("wide", "program = \"rm\"\nclass = \"confined\"" + example) +
               E("narrow", more + example))
            .find("rule narrow"),
        std::string::npos)
        << more;
  }
  EXPECT_EQ(
      Linted(E("wide",
               "program = [\"rm\"]\noperand = \"last\"\n"
               "place = \"workspace\"" +
                   example) +
             E("narrow", "program = \"rm\"\nplace = \"workspace\"" + example)),
      "");
}

TEST(LintTest, FindsNothingInTheBuiltInRules) {
  const auto rules =
      LoadSources({.builtin = true, .files = {}, .examples = true}, -1);
  ASSERT_TRUE(rules) << rules.error().ToString();
  for (const Warning& warning :
       Lint((*rules)->rules(), (*rules)->limits(), (*rules)->exec_rules())) {
    ADD_FAILURE() << warning.place.ToString() << ": " << warning.message;
  }
}

TEST(LintTest, WarnsOfLimitsWithoutEffect) {
  const std::string removed = "of = \"base_removed\"\n";
  EXPECT_EQ(Linted(L("none", removed + "max = 1\npath = [\"a\", \"b\"]\n"
                                       "unless = { path = [\"b\", \"a\"] }")),
            "2: limit none counts nothing: unless excludes all of its paths\n");
  const auto never_needed = [](int line, const std::string& id,
                               const std::string& because) {
    return std::to_string(line) + ": limit " + id +
           " has no effect: " + because + " is at least as strict\n";
  };
  const auto both = [&](const std::string& one, const std::string& other) {
    return Linted(L("one", removed + one) + L("other", removed + other));
  };
  const std::string first = never_needed(2, "one", "other (p.toml:8)");
  const std::string second = never_needed(8, "other", "one (p.toml:2)");
  EXPECT_EQ(both("max = 5", "max = 5"), second);
  EXPECT_EQ(both("max = 5", "max = 4"), first);
  EXPECT_EQ(both("max = 5", "max = 6"), second);
  EXPECT_EQ(both("max = 5", "max = 6\nfraction = 0.1"), second);
  EXPECT_EQ(both("max = 5", "max = 6\npath = \"a\""), second);
  EXPECT_EQ(both("max = 5", "max = 6\nunless = { path = \"a\" }"), second);
  EXPECT_EQ(both("fraction = 0.1", "fraction = 0.2"), second);
  EXPECT_EQ(both("max = 5", "max = 6\naction = \"audit\""), second);
}

TEST(LintTest, IsSilentWhereALimitMayDecide) {
  const std::string removed = "of = \"base_removed\"\n";
  const auto both = [&](const std::string& one, const std::string& other) {
    return Linted(L("one", removed + one) + L("other", removed + other));
  };
  for (const char* other :
       {"max = 6\nwindow = 9", "max = 4\npath = \"a\"",
        "max = 4\nunless = { path = \"a\" }", "max = 4\nfraction = 0.5",
        "fraction = 0.5", "max = 6\nat = \"commit\"",
        "max = 4\naction = \"audit\""}) {
    EXPECT_EQ(both("max = 5", other), "") << other;
  }
  EXPECT_EQ(both("max = 5\nat = \"commit\"", "max = 6\nat = \"commit\""), "");
  EXPECT_EQ(both("fraction = 0.1\npath = \"a\"", "fraction = 0.2"), "");
  EXPECT_EQ(both("fraction = 0.1", "fraction = 0.2\npath = \"a\""), "");
  EXPECT_EQ(Linted(L("one", "of = \"inodes_made\"\nmax = 5") +
                   L("other", "of = \"bytes_written\"\nmax = 5")),
            "");
}

}  // namespace
}  // namespace txfs::policy
