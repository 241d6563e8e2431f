#include "policy/builtin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "policy/node.h"
#include "policy/sources.h"

namespace txfs::policy {
namespace {

std::shared_ptr<const Policy> Builtin() {
  auto policy =
      LoadSources({.builtin = true, .files = {}, .examples = true}, -1);
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
  // Under its own name its examples are taken on trust.
  const auto checked =
      Compile({{.file = "checked", .text = std::string(BuiltinText())}});
  EXPECT_TRUE(checked) << checked.error().ToString();
}

TEST(BuiltinTest, TellsOfItsLines) {
  const std::string_view text = BuiltinText();
  const auto line_of = [&](const std::string& id) {
    const size_t at = text.find("\nid = \"" + id + "\"\n");
    EXPECT_NE(at, std::string_view::npos) << id;
    return 1 + std::ranges::count(text.substr(0, at), '\n');
  };
  const auto policy = Builtin();
  for (const Rule& rule : policy->rules()) {
    EXPECT_EQ(rule.place.line, line_of(rule.id)) << rule.id;
  }
  for (const ExecRule& rule : policy->exec_rules()) {
    EXPECT_EQ(rule.place.line, line_of(rule.id)) << rule.id;
  }
  EXPECT_EQ(Builtin()->rules().front().place.file, "built-in");
  EXPECT_TRUE(BuiltinText().starts_with("# The rules of every mount"));
}

TEST(BuiltinTest, IsFrozenAsItIsParsed) {
  auto parsed = ParseToml(BuiltinText(), "built-in");
  ASSERT_TRUE(parsed) << parsed.error().ToString();
  size_t examples = 0;
  for (Node& list : parsed->items) {
    for (Node& rule : list.items) {
      examples += std::erase_if(rule.items, [](const Node& item) {
        return item.key == "match" || item.key == "not_match";
      });
    }
  }
  EXPECT_GT(examples, 300U);
  EXPECT_EQ(AsText(FrozenRules()), AsText(EncodeNode(*parsed)));
  const auto frozen = DecodeNode(FrozenRules());
  ASSERT_TRUE(frozen);
  EXPECT_EQ(EncodeNode(*frozen), EncodeNode(*parsed));
}

TEST(BuiltinTest, IsTheSameWithoutItsExamples) {
  const auto with = Builtin();
  const auto without = LoadSources({.builtin = true, .files = {}}, -1);
  ASSERT_TRUE(without) << without.error().ToString();
  EXPECT_EQ((*without)->hash(), with->hash());
  ASSERT_EQ((*without)->rules().size(), with->rules().size());
  ASSERT_EQ((*without)->exec_rules().size(), with->exec_rules().size());
  for (size_t i = 0; i < with->rules().size(); ++i) {
    const Rule& rule = (*without)->rules()[i];
    EXPECT_EQ(rule.id, with->rules()[i].id);
    EXPECT_EQ(rule.place.line, with->rules()[i].place.line) << rule.id;
    EXPECT_TRUE(rule.examples.empty()) << rule.id;
  }
  for (size_t i = 0; i < with->exec_rules().size(); ++i) {
    const ExecRule& rule = (*without)->exec_rules()[i];
    EXPECT_EQ(rule.id, with->exec_rules()[i].id);
    EXPECT_EQ(rule.place.line, with->exec_rules()[i].place.line) << rule.id;
    EXPECT_EQ(rule.suggest, with->exec_rules()[i].suggest) << rule.id;
    EXPECT_TRUE(rule.examples.empty()) << rule.id;
  }
}

TEST(BuiltinTest, OneOfItsRulesOrLimitsCanBeLeftOut) {
  const auto whole = Builtin();
  const auto rest = LoadSources(
      {.builtin = true, .without = {"txfs-ci", "txfs-mass-deletion"}}, -1);
  ASSERT_TRUE(rest) << rest.error().ToString();
  EXPECT_EQ((*rest)->rules().size(), whole->rules().size() - 1);
  EXPECT_TRUE((*rest)->limits().empty());
  EXPECT_NE((*rest)->hash(), whole->hash());
  for (const Rule& rule : (*rest)->rules()) {
    const auto same = std::ranges::find(whole->rules(), rule.id, &Rule::id);
    ASSERT_NE(same, whole->rules().end()) << rule.id;
    EXPECT_NE(rule.id, "txfs-ci");
    EXPECT_TRUE(rule.examples.empty()) << "parsed anew: " << rule.id;
    EXPECT_EQ(rule.place.line, same->place.line) << rule.id;
  }
  for (const Rule& rule : whole->rules()) {
    EXPECT_TRUE(LoadSources({.builtin = true, .without = {rule.id}}, -1))
        << rule.id;
  }
  EXPECT_TRUE(
      LoadSources({.builtin = true, .without = {"txfs-ci", "txfs-ci"}}, -1));
  for (const bool builtin : {true, false}) {
    const auto unknown =
        LoadSources({.builtin = builtin, .without = {"txfs-c"}}, -1);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, EINVAL);
  }
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
    Type type = Type::kFile;
    const char* other_end = "";
  };
  constexpr const char* kGit = "/usr/lib/git-core/git";
  constexpr const char* kMove = "/usr/bin/mv";
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
      {Op::kWrite, ".github/workflows/ci.yml", Layer::kBase, kGit},
      {Op::kWrite, "web/.github/workflows/ci.yml", Layer::kBase, kMove},
      {Op::kWrite, ".github/CODEOWNERS", Layer::kBase, kMove},
      {Op::kWrite, "AGENTS.md", Layer::kBase, "/usr/bin/node"},
      {Op::kCreate, "tree/.git", Layer::kNew, kGit},
      {Op::kSymlink, ".git/modules/lib/tu1YSLf", Layer::kNew, kGit,
       Type::kSymlink},
      {Op::kCreate, ".git/worktrees/tree/commondir", Layer::kNew, kGit},
      {Op::kUnlink, "library/.git", Layer::kBase, "/usr/bin/rm"},
      {Op::kRename, "tree/.git", Layer::kBase, kMove, Type::kFile, "t/.git"},
      {Op::kCreate, ".git/modules/lib/refs/heads/hooks/pre-x", Layer::kNew,
       kGit},
      {Op::kUnlink, ".git/modules/lib/refs/heads/hooks/pre-x", Layer::kBase,
       kGit},
      {Op::kRmdir, ".git/modules/lib/refs/heads/hooks", Layer::kBase, kGit,
       Type::kDirectory},
      {Op::kCreate, ".git/modules/packages/hooks/index.lock", Layer::kNew,
       kGit},
      {Op::kUnlink, ".git/objects/00/11", Layer::kBase, kGit},
      {Op::kUnlink, ".git/packed-refs", Layer::kBase, kGit},
      {Op::kRename, ".git/refs/heads/main", Layer::kBase, "/usr/bin/python3"},
      {Op::kWrite, ".git/objects/00/11", Layer::kBase, kGit},
      {Op::kWrite, ".git/logs/HEAD", Layer::kBase, "/usr/bin/python3"},
      {Op::kRename, ".git/HEAD", Layer::kBase, "/usr/bin/gnome-builder"},
      {Op::kTruncate, ".git/logs/HEAD", Layer::kBase, kGit},
      {Op::kWrite, ".git/packed-refs", Layer::kBase, "/home/u/.cargo/bin/jj"},
      {Op::kWrite, ".git/objects/00/tmp_obj_x", Layer::kNew, "/usr/bin/java"},
      {Op::kWrite, "clone/.git/HEAD", Layer::kBase, "/usr/bin/dulwich"},
      {Op::kUnlink, ".env.production", Layer::kBase, kGit},
      {Op::kRename, "app/.env", Layer::kBase, kMove, Type::kFile,
       "apps/app/.env"},
      {Op::kRename, "app/tls.key", Layer::kBase, kMove, Type::kFile,
       "apps/app/tls.key"},
      {Op::kRename, "sub/.git/hooks/pre-commit", Layer::kBase, kMove,
       Type::kFile, "other/.git/hooks/pre-commit"},
      {Op::kRename, ".env", Layer::kBase, kMove, Type::kDirectory},
      {Op::kWrite, "android/app/debug.keystore", Layer::kBase, "/usr/bin/java"},
      {Op::kWrite, "docs/Talk.key", Layer::kBase, "/usr/bin/cp"},
      {Op::kWrite, ".env.test", Layer::kBase, "/usr/bin/sed"},
      {Op::kWrite, ".npmrc", Layer::kBase, "/usr/bin/node"},
  };
  const auto policy = Builtin();
  for (const Case& one : kCases) {
    const Event event{.op = one.op,
                      .effect = MainEffect(one.op),
                      .path = one.path,
                      .layer = one.layer,
                      .type = one.type,
                      .other_end = one.other_end,
                      .exe = one.exe};
    const Verdict verdict = Evaluate(*policy, event);
    EXPECT_NE(verdict.action, Action::kDeny)
        << NameOf(one.op) << " " << one.path << ": " << verdict.rule->id;
  }
}

/// What leads to the same end as what is held or refused by its name.
TEST(BuiltinTest, OtherWaysAreHeldOrRefused) {
  struct Case {
    Op op;
    Effect effect;
    const char* path;
    const char* rule;
    Type type = Type::kFile;
    const char* other_end = "";
    const char* exe = "/usr/bin/mv";
  };
  constexpr const char* kGit = "/usr/bin/git";
  constexpr Effect kMade = Effect::kMake;
  constexpr Effect kGone = Effect::kRemove;
  constexpr Effect kWritten = Effect::kContent;
  constexpr Type kLink = Type::kSymlink;
  constexpr Type kDirectory = Type::kDirectory;
  constexpr Case kCases[] = {
      {Op::kRename, kMade, ".git/hooks", "txfs-git-link", kLink},
      {Op::kLink, kMade, "sub/.git/hooks", "txfs-git-link", kLink},
      {Op::kExchange, kMade, ".git/hooks", "txfs-git-link", kLink},
      {Op::kRename, kMade, "e.git/hooks", "txfs-git-link", kLink, "e/hooks"},
      {Op::kSymlink, kMade, ".git", "txfs-git-link", kLink},
      {Op::kRename, kMade, ".claude", "txfs-settings-link", kLink},
      {Op::kSymlink, kMade, ".claude/hooks", "txfs-settings-link", kLink},
      {Op::kRename, kMade, "e.git/hooks/pre-commit", "txfs-git-hooks",
       Type::kFile, "e/hooks/pre-commit"},
      {Op::kCreate, kMade, ".GIT/hooks/pre-commit", "txfs-git-hooks"},
      {Op::kCreate, kMade, ".git/modules/hooks/hooks/update", "txfs-git-hooks"},
      {Op::kCreate, kMade, "library/.git", "txfs-git-file"},
      {Op::kRename, kMade, ".git/commondir", "txfs-git-file"},
      {Op::kCreate, kMade, ".git/config.worktree", "txfs-git-config"},
      {Op::kCreate, kMade, ".git/worktrees/t/config", "txfs-git-config"},
      {Op::kCreate, kMade, ".git/worktrees/t/hooks/update", "txfs-git-hooks"},
      {Op::kUnlink, kGone, ".git/hooks/pre-commit", "txfs-git-hooks-kept"},
      {Op::kUnlink, kGone, ".git/config", "txfs-git-config-kept"},
      {Op::kWrite, kWritten, ".env", "txfs-env-files"},
      {Op::kWrite, kWritten, "tls.key", "txfs-keys"},
      {Op::kWrite, kWritten, ".netrc", "txfs-credentials"},
      {Op::kCreate, kMade, "venv/lib/site-packages/x.pth",
       "txfs-python-startup"},
      {Op::kCreate, kMade, ".git/worktrees/t/commondir", "txfs-git-file"},
      {Op::kUnlink, kGone, "Jenkinsfile", "txfs-ci"},
      {Op::kCreate, kMade, ".github/workflows/new.yml", "txfs-ci"},
      {Op::kSymlink, kMade, ".github", "txfs-ci-link", kLink},
      {Op::kRename, kMade, ".circleci", "txfs-ci-link", kLink},
      {Op::kRename, kMade, ".GitHub/Workflows/ci.yml", "txfs-ci"},
      {Op::kUnlink, kGone, ".git/HEAD", "txfs-git-refs-kept"},
      {Op::kUnlink, kGone, ".git/objects/00/11", "txfs-git-kept"},
      {Op::kRename, kGone, ".git", "txfs-git-kept", kDirectory},
      {Op::kTruncate, kWritten, ".git/objects/00/11", "txfs-git-kept"},
      {Op::kAllocate, kWritten, ".git/objects/pack/p.pack", "txfs-git-kept"},
      {Op::kRename, kGone, ".git/objects/00/11", "txfs-git-kept"},
      {Op::kExchange, kGone, ".git/objects/00/11", "txfs-git-kept"},
      {Op::kWrite, kWritten, ".Git/Objects/00/11", "txfs-git-kept"},
      {Op::kTruncate, kWritten, ".git/objects/00/11", "txfs-git-kept",
       Type::kFile, "", ""},
      {Op::kTruncate, kWritten, ".git/HEAD", "txfs-git-refs-kept"},
      {Op::kWrite, kWritten, ".git/refs/heads/main", "txfs-git-refs-kept"},
      {Op::kWrite, kWritten, ".git/packed-refs", "txfs-git-refs-kept",
       Type::kFile, "", "/opt/ws/bash"},
      {Op::kExchange, kGone, ".git/HEAD", "txfs-git-refs-kept"},
      {Op::kTruncate, kWritten, ".git/logs/HEAD", "txfs-git-logs-kept"},
      {Op::kUnlink, kGone, ".git/logs/HEAD", "txfs-git-logs-kept"},
      {Op::kUnlink, kGone, ".env", "txfs-untracked-kept", Type::kFile, "",
       kGit},
      {Op::kUnlink, kGone, "app/.env.local", "txfs-untracked-kept", Type::kFile,
       "", kGit},
      {Op::kRename, kGone, "app/.env", "txfs-env-kept", Type::kFile,
       "node_modules/app/.env"},
      {Op::kRename, kGone, "app/tls.key", "txfs-keys-kept", Type::kFile,
       "build/app/tls.key"},
      {Op::kRename, kGone, ".ssh/config", "txfs-credentials-kept", Type::kFile,
       "ssh/config"},
  };
  const auto policy = Builtin();
  for (const Case& one : kCases) {
    const Event event{.op = one.op,
                      .effect = one.effect,
                      .path = one.path,
                      .layer = one.effect == kMade ? Layer::kNew : Layer::kBase,
                      .type = one.type,
                      .other_end = one.other_end,
                      .moved = one.op == Op::kRename && one.effect == kGone,
                      .exe = one.exe};
    const std::string_view rule = one.rule;
    const bool is_held =
        !rule.ends_with("-kept") || rule == "txfs-git-hooks-kept";
    const Verdict verdict = Evaluate(*policy, event);
    EXPECT_EQ(verdict.action, is_held ? Action::kHold : Action::kDeny)
        << NameOf(one.op) << " " << one.path;
    EXPECT_EQ(verdict.rule == nullptr ? "" : verdict.rule->id, rule)
        << NameOf(one.op) << " " << one.path;
  }
}

}  // namespace
}  // namespace txfs::policy
