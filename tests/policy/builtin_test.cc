#include "policy/builtin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "policy/sources.h"

namespace txfs::policy {
namespace {

std::shared_ptr<const Policy> Builtin() {
  auto policy = LoadSources({.builtin = true, .files = {}}, -1);
  EXPECT_TRUE(policy) << policy.error().ToString();
  return policy ? *policy : std::make_shared<const Policy>();
}

TEST(BuiltinTest, EachRuleHasExamplesOfBothKindsThatHold) {
  const auto policy = Builtin();
  EXPECT_GE(policy->rules().size(), 10U);
  for (const Rule& rule : policy->rules()) {
    EXPECT_TRUE(rule.id.starts_with("txfs-")) << rule.id;
    EXPECT_TRUE(std::ranges::any_of(rule.examples, &Example::matches))
        << rule.id;
    EXPECT_FALSE(std::ranges::all_of(rule.examples, &Example::matches))
        << rule.id;
  }
}

TEST(BuiltinTest, TellsOfItsLines) {
  EXPECT_EQ(Builtin()->rules().front().place.file, "built-in");
  EXPECT_TRUE(BuiltinText().starts_with("# The rules of every mount"));
}

TEST(BuiltinTest, MassDeletionIsOfWhatPeopleWroteAndJudgedAtTheCommit) {
  const auto policy = Builtin();
  ASSERT_EQ(policy->limits().size(), 1U);
  const Limit& limit = policy->limits()[0];
  EXPECT_EQ(limit.id, "txfs-mass-deletion");
  EXPECT_TRUE(limit.at_commit);
  EXPECT_EQ(limit.action, Action::kDeny);
  EXPECT_FALSE(Exceeds(limit, 50, 60));
  EXPECT_FALSE(Exceeds(limit, 300, 1000));
  EXPECT_TRUE(Exceeds(limit, 51, 60));
  for (const char* path : {"src/main.c", "web/src/app.ts", "README.md", "src",
                           "third_party/lib.c", "builder/x", ".github/x.yml"}) {
    EXPECT_TRUE(limit.Counts(path)) << path;
  }
  for (const char* path :
       {".git/objects/ab/cd", "web/node_modules/x/y.js", "build/a/b.o",
        "crates/x/target", "vendor/a.go", ".venv/bin/python",
        "src/__pycache__/a.pyc", "cmake-build-debug/x", "src/a.o"}) {
    EXPECT_FALSE(limit.Counts(path)) << path;
  }
}

/// What everyday work does, by the programs that do it.
TEST(BuiltinTest, OrdinaryWorkIsNotRefused) {
  struct Case {
    Op op;
    const char* path;
    Layer layer;
    const char* exe;
  };
  constexpr const char* kGit = "/usr/lib/git-core/git";
  constexpr Case kCases[] = {
      {Op::kRename, ".git/config", Layer::kBase, kGit},
      {Op::kCreate, "clone/.git/config", Layer::kNew, "/usr/bin/cp"},
      {Op::kCreate, ".git/hooks/pre-commit.sample", Layer::kNew, kGit},
      {Op::kUnlink, "clone/.git/config", Layer::kNew, "/usr/bin/rm"},
      {Op::kUnlink, "build/_deps/x-src/.git/config", Layer::kBase,
       "/usr/bin/rm"},
      {Op::kRmdir, "build/_deps/x-src/.git/hooks", Layer::kBase, "/usr/bin/rm"},
      {Op::kUnlink, ".vscode/settings.json", Layer::kBase, kGit},
      {Op::kCreate, "web/.vscode/settings.json", Layer::kNew, "/usr/bin/node"},
      {Op::kCreate, ".env", Layer::kNew, "/usr/bin/cp"},
      {Op::kWrite, ".env.local", Layer::kNew, "/usr/bin/sh"},
      {Op::kWrite, ".env.example", Layer::kBase, "/usr/bin/sed"},
      {Op::kUnlink, "node_modules/psl/.env", Layer::kBase, "/usr/bin/node"},
      {Op::kRename, ".env", Layer::kBase, kGit},
      {Op::kCreate, "server.pem", Layer::kNew, "/usr/bin/openssl"},
      {Op::kUnlink, "v/lib/site-packages/certifi/cacert.pem", Layer::kBase,
       "/usr/bin/python3.11"},
      {Op::kWrite, ".github/workflows/ci.yml", Layer::kBase, "/usr/bin/sed"},
      {Op::kWrite, "AGENTS.md", Layer::kBase, "/usr/bin/node"},
  };
  const auto policy = Builtin();
  for (const Case& one : kCases) {
    const Event event{.op = one.op,
                      .effect = MainEffect(one.op),
                      .path = one.path,
                      .layer = one.layer,
                      .exe = one.exe};
    const Verdict verdict = Evaluate(*policy, event);
    EXPECT_NE(verdict.action, Action::kDeny)
        << NameOf(one.op) << " " << one.path << ": " << verdict.rule->id;
  }
}

}  // namespace
}  // namespace txfs::policy
