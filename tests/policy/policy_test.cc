#include "policy/policy.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace txfs::policy {
namespace {

/// A rule about `patterns`; the rest is to be filled in.
Rule About(std::string id, const std::vector<std::string>& patterns,
           Action action = Action::kDeny, bool nocase = false) {
  Rule rule;
  rule.id = std::move(id);
  rule.action = action;
  for (const std::string& pattern : patterns) {
    auto glob = Glob::Parse(pattern, nocase);
    EXPECT_TRUE(glob);
    if (glob) rule.when.paths.push_back(std::move(*glob));
  }
  return rule;
}

Event Of(Op op, std::string_view path) {
  return {.op = op, .effect = MainEffect(op), .path = path, .exe = {}};
}

std::string Decider(const Policy& policy, const Event& event) {
  const Verdict verdict = Evaluate(policy, event);
  return verdict.rule == nullptr ? "" : verdict.rule->id;
}

TEST(PolicyTest, WithoutRulesAllIsAllowed) {
  const Policy policy;
  EXPECT_FALSE(policy.Cares(kEverything));
  EXPECT_EQ(Evaluate(policy, Of(Op::kUnlink, "a")).action, Action::kAllow);
}

TEST(PolicyTest, TheStrongestActionDecidesWhateverTheOrder) {
  const Policy policy({About("noted", {"a"}, Action::kAudit),
                       About("denied", {"a"}, Action::kDeny),
                       About("denied-too", {"a"}, Action::kDeny),
                       About("noted-too", {"a"}, Action::kAudit)});
  const Verdict verdict = Evaluate(policy, Of(Op::kUnlink, "a"));
  EXPECT_EQ(verdict.action, Action::kDeny);
  EXPECT_EQ(verdict.rule->id, "denied");
  EXPECT_EQ(policy.Matching(Of(Op::kUnlink, "a")).size(), 4U);
}

TEST(PolicyTest, OpsAreOperationsOrWhatTheyDo) {
  Rule removal = About("removal", {"a"});
  removal.ops = MaskOf(Effect::kRemove);
  Rule chmods = About("chmods", {"a"});
  chmods.ops = MaskOf(Op::kChmod);
  const Policy policy({removal, chmods});
  EXPECT_EQ(Decider(policy, Of(Op::kUnlink, "a")), "removal");
  EXPECT_EQ(Decider(policy, Of(Op::kRename, "a")), "removal");
  EXPECT_EQ(Decider(policy, Of(Op::kChmod, "a")), "chmods");
  EXPECT_EQ(Decider(policy, Of(Op::kChown, "a")), "");
  Event target = Of(Op::kRename, "a");
  target.effect = Effect::kMake;
  EXPECT_EQ(Decider(policy, target), "");
  EXPECT_FALSE(policy.Cares(MaskOf(Effect::kMake) | MaskOf(Op::kCreate)));
}

TEST(PolicyTest, LayersTellTheBasesFromWhatIsNew) {
  Rule rule = About("old", {"a"});
  rule.when.layer = Layer::kBase;
  const Policy policy({rule});
  Event event = Of(Op::kUnlink, "a");
  EXPECT_EQ(Decider(policy, event), "old");
  event.layer = Layer::kNew;
  EXPECT_EQ(Decider(policy, event), "");
}

TEST(PolicyTest, TypesTellWhatANameLeadsTo) {
  Rule link = About("link", {"a"});
  link.when.types = {Type::kSymlink, Type::kOther};
  Rule but = About("but", {"b"});
  but.unless.emplace_back().types = {Type::kDirectory};
  const Policy policy({link, but});
  const auto decider = [&](const char* path, Type type) {
    Event event = Of(Op::kRename, path);
    event.effect = Effect::kMake;
    event.type = type;
    return Decider(policy, event);
  };
  EXPECT_EQ(decider("a", Type::kSymlink), "link");
  EXPECT_EQ(decider("a", Type::kOther), "link");
  EXPECT_EQ(decider("a", Type::kFile), "");
  EXPECT_EQ(decider("a", Type::kDirectory), "");
  EXPECT_EQ(decider("b", Type::kFile), "but");
  EXPECT_EQ(decider("b", Type::kDirectory), "");
}

TEST(PolicyTest, WhatStaysProtectedMayGoAlongWithItsDirectory) {
  Rule secret = About("secret", {".env"});
  secret.with_directory = false;
  auto free = Glob::Parse("free/**", false);
  ASSERT_TRUE(free);
  secret.unless.emplace_back().paths.push_back(std::move(*free));
  const Policy policy({secret});
  const auto decider = [&](const char* path, const char* other_end) {
    Event event = Of(Op::kRename, path);
    event.other_end = other_end;
    return Decider(policy, event);
  };
  EXPECT_EQ(decider("a/.env", ""), "secret") << "it is named itself";
  EXPECT_EQ(decider("a/.env", "b/.env"), "");
  EXPECT_EQ(decider("a/.env", "free/.env"), "secret");
  EXPECT_EQ(decider("a/.env", "a/env"), "secret");
  EXPECT_EQ(
      Decider(Policy({About("all", {".env"})}), {.op = Op::kRename,
                                                 .effect = Effect::kRemove,
                                                 .path = "a/.env",
                                                 .other_end = "b/.env",
                                                 .exe = {}}),
      "all");
}

TEST(PolicyTest, AnExceptionHoldsWhenAllOfItDoes) {
  Rule rule = About("hooks", {".git/"});
  rule.unless.resize(1);
  rule.unless[0].paths.push_back(*Glob::Parse("**/index", false));
  rule.unless[0].exes.push_back(*Glob::Parse("/usr/bin/git", false));
  const Policy policy({rule});
  Event event = Of(Op::kWrite, ".git/index");
  EXPECT_EQ(Decider(policy, event), "hooks") << "by a program not known";
  event.exe = "/usr/bin/git";
  EXPECT_EQ(Decider(policy, event), "");
  event.path = ".git/config";
  EXPECT_EQ(Decider(policy, event), "hooks");
  event.path = ".git/index";
  event.exe = "/home/git";
  EXPECT_EQ(Decider(policy, event), "hooks");
}

TEST(PolicyTest, OneOfSeveralExceptionsIsEnough) {
  Rule rule = About("secret", {".env"});
  rule.unless.resize(2);
  rule.unless[0].exes.push_back(*Glob::Parse("/usr/bin/git", false));
  rule.unless[1].paths.push_back(*Glob::Parse("**/vendor/**", false));
  const Policy policy({rule});
  Event event = Of(Op::kWrite, ".env");
  EXPECT_EQ(Decider(policy, event), "secret");
  event.path = "vendor/.env";
  EXPECT_EQ(Decider(policy, event), "");
  event.path = ".env";
  event.exe = "/usr/bin/git";
  EXPECT_EQ(Decider(policy, event), "");
}

TEST(PolicyTest, AProgramThatIsNotKnownMayBeTheOneThatIsMeant) {
  Rule rule = About("no-dd", {"a"});
  rule.when.exes.push_back(*Glob::Parse("dd", false));
  const Policy policy({rule});
  Event event = Of(Op::kWrite, "a");
  EXPECT_EQ(Decider(policy, event), "no-dd");
  event.exe = "/bin/dd";
  EXPECT_EQ(Decider(policy, event), "no-dd");
  event.exe = "/bin/cp";
  EXPECT_EQ(Decider(policy, event), "");
}

TEST(PolicyTest, UsersAreNumbers) {
  Rule rule = About("user", {"a"});
  rule.when.uids = {1000, 1001};
  const Policy policy({rule});
  Event event = Of(Op::kWrite, "a");
  EXPECT_EQ(Decider(policy, event), "");
  event.uid = 1001;
  EXPECT_EQ(Decider(policy, event), "user");
}

TEST(PolicyTest, CaseCountsUnlessTheRuleSaysOtherwise) {
  const Policy policy({About("exact", {"Exact"}),
                       About("loose", {".git/hooks/"}, Action::kDeny, true)});
  EXPECT_EQ(Decider(policy, Of(Op::kWrite, "a/Exact")), "exact");
  EXPECT_EQ(Decider(policy, Of(Op::kWrite, "a/exact")), "");
  EXPECT_EQ(Decider(policy, Of(Op::kCreate, ".GIT/Hooks/x")), "loose");
}

TEST(PolicyTest, SaysWhereSomethingBelowMayBeMeant) {
  Rule rule = About("hooks", {".git/hooks/**", "/a/b"});
  rule.ops = MaskOf(Effect::kRemove);
  const Policy policy({rule});
  EXPECT_TRUE(policy.MayMatchBelow(MaskOf(Effect::kRemove), ".git"));
  EXPECT_TRUE(policy.MayMatchBelow(MaskOf(Effect::kRemove), ""));
  EXPECT_FALSE(policy.MayMatchBelow(MaskOf(Effect::kRemove), "src"));
  EXPECT_FALSE(policy.MayMatchBelow(MaskOf(Effect::kMake), ".git"));
}

TEST(PolicyTest, FindsARuleAmongManyByAnyOfItsNames) {
  std::vector<Rule> rules;
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    rules.push_back(About("r" + number, {"dir" + number + "/*.c",
                                         "*.x" + number, "**/name" + number}));
  }
  const Policy policy(std::move(rules));
  for (int i = 0; i < 200; ++i) {
    const std::string number = std::to_string(i);
    const std::string id = "r" + number;
    EXPECT_EQ(Decider(policy, Of(Op::kWrite, "dir" + number + "/f.c")), id);
    EXPECT_EQ(Decider(policy, Of(Op::kWrite, "a/f.x" + number)), id);
    EXPECT_EQ(Decider(policy, Of(Op::kWrite, "a/b/name" + number)), id);
  }
  EXPECT_EQ(Decider(policy, Of(Op::kWrite, "dir/f.c")), "");
}

TEST(EventTest, NamesLeadBothWays) {
  for (size_t i = 0; i < kOps; ++i) {
    const Op op = static_cast<Op>(i);
    EXPECT_EQ(OpNamed(NameOf(op)), op);
  }
  for (size_t i = 0; i < kEffects; ++i) {
    const Effect effect = static_cast<Effect>(i);
    EXPECT_EQ(EffectNamed(NameOf(effect)), effect);
  }
  EXPECT_EQ(OpNamed("remove"), std::nullopt);
  EXPECT_EQ(ActionNamed("deny"), Action::kDeny);
}

}  // namespace
}  // namespace txfs::policy
