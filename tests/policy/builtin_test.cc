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
