#include "policy/explain.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/lint.h"
#include "policy/load.h"

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

std::string Decider(const Policy& policy, const Question& question) {
  const Verdict verdict = Explain(policy, question).verdict;
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
  const Answer answer =
      Explain(policy, {.op = Op::kExchange, .path = "a", .new_path = "b"});
  ASSERT_EQ(answer.matches.size(), 2U);
  EXPECT_EQ(answer.matches[0].path, "a");
  EXPECT_EQ(answer.matches[1].path, "b");
}

/// What there is to warn of, a line each.
std::string Linted(const std::string& text) {
  const std::vector<Rule> rules = RulesIn(text);
  std::string all;
  for (const Warning& warning : Lint(rules)) {
    all += std::to_string(warning.place.line) + ": " + warning.message + "\n";
  }
  return all;
}

TEST(LintTest, WarnsOfWhatIsCertain) {
  const std::string example = "\nmatch = \"write a\"";
  EXPECT_EQ(Linted(A("good", "path = \"a\"" + example)), "");
  EXPECT_EQ(Linted(A("bare", "path = \"a\"")),
            "2: rule bare has no examples: match and not_match show what it is "
            "about\n");
  EXPECT_EQ(Linted(A("wide", "path = [\"a\", \"b\"]" + example) +
                   A("narrow", "path = \"a\"\nops = [\"write\"]" + example)),
            "8: rule narrow never decides: wide (p.toml:2) is about all of "
            "it\n");
  EXPECT_EQ(Linted(A("noted", "path = \"a\"\naction = \"audit\"" + example) +
                   A("denied", "path = \"a\"" + example)),
            "2: rule noted never decides: denied (p.toml:9) is about all of "
            "it\n");
}

TEST(LintTest, IsSilentWhereARuleMayDecide) {
  const std::string example = "\nmatch = \"write a\"";
  const std::string narrow = A("narrow", "path = \"a\"" + example);
  for (const char* less :
       {"layer = \"base\"", "exe = \"sh\"", "uid = 1", "unless = { uid = 1 }",
        "nocase = true", "ops = [\"write\"]", "action = \"audit\""}) {
    EXPECT_EQ(
        Linted(A("wide", "path = \"a\"\n" + std::string(less) + example) +
               narrow),
        std::string(less).starts_with("action")
            ? "2: rule wide never decides: narrow (p.toml:9) is about all of "
              "it\n"
            : "")
        << less;
  }
}

}  // namespace
}  // namespace txfs::policy
