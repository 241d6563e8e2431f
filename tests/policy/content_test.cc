#include "policy/content.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace txfs::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Lines(ContentKind kind, std::string_view before,
                               std::string_view after,
                               std::string_view path = ".git/config") {
  return LinesThatMatter(kind, before, after,
                         {.path = path, .workspace = "/home/u/ws"});
}

constexpr std::string_view kInit =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
    "\tlogallrefupdates = true\n";

TEST(GitConfigTest, WhatGitWritesItselfIsHarmless) {
  const std::string cloned =
      std::string(kInit) +
      "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n"
      "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
      "[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
      "[user]\n\tname = A\n\temail = a@example.org\n"
      "[submodule]\n\tactive = .\n[submodule \"lib\"]\n\turl = ../lib\n"
      "\tactive = true\n[extensions]\n\tworktreeConfig = true\n";
  EXPECT_THAT(Lines(ContentKind::kGitConfig, "", kInit), IsEmpty());
  EXPECT_THAT(Lines(ContentKind::kGitConfig, "", cloned), IsEmpty());
  EXPECT_THAT(Lines(ContentKind::kGitConfig, cloned, kInit), IsEmpty());
  EXPECT_THAT(
      Lines(ContentKind::kGitConfig, "", "[core]\n\tworktree = ../../../lib\n",
            ".git/modules/lib/config"),
      IsEmpty());
}

TEST(GitConfigTest, HoldsWhatRunsProgramsOrLeadsElsewhere) {
  struct Case {
    std::string_view text, line;
  };
  constexpr Case kCases[] = {
      {"[core]\nfsmonitor = ./evil\n", "core.fsmonitor = ./evil"},
      {"[CORE]\nFsMonitor = ./evil", "core.fsmonitor = ./evil"},
      {"[core] hooksPath = x", "core.hookspath = x"},
      {"[alias]\n st = !sh\n", "alias.st = !sh"},
      {"[include]\n path = ../evil\n", "include.path = ../evil"},
      {"[includeIf \"gitdir:x\"]\n path = y\n", "includeif.gitdir:x.path = y"},
      {"[filter \"x\"]\n clean = a\n", "filter.x.clean = a"},
      {"[filter.x]\n clean = a\n", "filter.x.clean = a"},
      {"[diff \"x\"]\n textconv = a\n", "diff.x.textconv = a"},
      {"[credential]\n helper = !x\n", "credential.helper = !x"},
      {"[url \"e\"]\n insteadOf = h\n", "url.e.insteadof = h"},
      {"[gpg]\n program = x\n", "gpg.program = x"},
      {"[gc]\n recentObjectsHook = x\n", "gc.recentobjectshook = x"},
      {"[remote \"o\"]\n url = ext::sh -c x\n", "remote.o.url = ext::sh -c x"},
      {"[remote \"o\"]\n uploadpack = x\n", "remote.o.uploadpack = x"},
      {"[submodule \"o\"]\n update = !x\n", "submodule.o.update = !x"},
      {"[branch \"o\"]\n remote = https://e/x\n",
       "branch.o.remote = https://e/x"},
      {"[core]\n worktree = ../../..\n", "core.worktree = ../../.."},
      {"[core]\n bare = false ; \\\n fsmonitor = x\n", "core.fsmonitor = x"},
      {"[core]\n\tpager = a \\\n b\n", "core.pager = a  b"},
      {"[core]\r\npager = a\r\n", "core.pager = a"},
      {"\xEF\xBB\xBF[core]\npager = a", "core.pager = a"},
      {"[future]\n thing = 1\n", "future.thing = 1"},
      {"no section = 1\n", "no section = 1"},
  };
  for (const Case& one : kCases) {
    EXPECT_THAT(Lines(ContentKind::kGitConfig, "", one.text),
                ElementsAre(std::string(one.line)))
        << one.text;
  }
}

TEST(GitConfigTest, HoldsOnlyWhatIsNewAndAnotherOrder) {
  const std::string before = "[core]\npager = a\npager = b\n";
  EXPECT_THAT(Lines(ContentKind::kGitConfig, before,
                    "[core]\npager = a\npager = b\n[user]\nname = x\n"),
              IsEmpty());
  EXPECT_THAT(Lines(ContentKind::kGitConfig, before, "[core]\npager = b\n"),
              IsEmpty());
  EXPECT_THAT(
      Lines(ContentKind::kGitConfig, before, "[core]\npager = b\npager = a\n"),
      ElementsAre("core.pager = b", "core.pager = a"));
}

TEST(GitConfigTest, AnotherAddressOfAKnownRemoteIsHeld) {
  const std::string before = "[remote \"origin\"]\nurl = https://a\n";
  EXPECT_THAT(Lines(ContentKind::kGitConfig, before,
                    "[remote \"origin\"]\nurl = https://evil\n"),
              ElementsAre("remote.origin.url = https://evil"));
  EXPECT_THAT(Lines(ContentKind::kGitConfig, before,
                    before + "pushurl = https://evil\n"),
              ElementsAre("remote.origin.pushurl = https://evil"));
  EXPECT_THAT(Lines(ContentKind::kGitConfig, before,
                    before + "[remote \"other\"]\nurl = https://b\n"),
              IsEmpty());
}

TEST(GitConfigTest, HoldsWhatLeadsPushesElsewhere) {
  const std::string before =
      "[remote \"origin\"]\nurl = https://a\n"
      "[branch \"main\"]\nremote = origin\n";
  const auto lines = [&](const std::string& more) {
    return Lines(ContentKind::kGitConfig, before, before + more);
  };
  EXPECT_THAT(lines("[remote \"up\"]\nurl = https://b\nmirror = true\n"
                    "[branch \"new\"]\nremote = up\npushremote = origin\n"),
              IsEmpty());
  EXPECT_THAT(lines("pushremote = origin\nmerge = refs/heads/x\n"), IsEmpty());
  EXPECT_THAT(lines("remote = up\n"), ElementsAre("branch.main.remote = up"));
  EXPECT_THAT(lines("pushremote = up\n"),
              ElementsAre("branch.main.pushremote = up"));
  EXPECT_THAT(lines("[remote \"origin\"]\nmirror = true\n"),
              ElementsAre("remote.origin.mirror = true"));
  EXPECT_THAT(lines("[remote \"origin\"]\npush = +refs/*:refs/*\n"),
              ElementsAre("remote.origin.push = +refs/*:refs/*"));
}

TEST(GitConfigTest, AnAddressMayHaveColonsInBrackets) {
  const auto lines = [](const std::string& address) {
    return Lines(ContentKind::kGitConfig, "",
                 "[remote \"o\"]\nurl = " + address + "\n");
  };
  EXPECT_THAT(lines("ssh://git@[2001:db8::1]/x.git"), IsEmpty());
  EXPECT_THAT(lines("https://[::1]/x.git"), IsEmpty());
  EXPECT_FALSE(lines("ext::sh -c [x]").empty());
  EXPECT_FALSE(lines("ext[::]x").empty());
  EXPECT_FALSE(lines("a::b://[x::y]").empty());
}

TEST(GitConfigTest, ABranchMayBeCalledConfig) {
  const std::string commit(40, 'a');
  const std::string log = commit + " " + commit + " A <a@b> 1 +0000\tx\n";
  const auto lines = [](const std::string& text, std::string_view path) {
    return Lines(ContentKind::kGitConfig, "", text, path);
  };
  EXPECT_THAT(lines(commit + "\n", ".git/refs/heads/config"), IsEmpty());
  EXPECT_THAT(lines(std::string(64, 'a'), ".git/refs/heads/config"), IsEmpty());
  EXPECT_THAT(lines(log + log, ".git/logs/refs/heads/config"), IsEmpty());
}

TEST(GitConfigTest, WhatBeginsLikeABranchIsRead) {
  const std::string commit(40, 'a');
  constexpr std::string_view kEvil = "[core]\n fsmonitor = evil\n";
  for (const std::string& first : {commit + "a", commit, commit + " x"}) {
    for (const std::string_view path :
         {".git/config", "x.git/config", ".git/modules/lib/config",
          ".git/refs/heads/config"}) {
      EXPECT_THAT(Lines(ContentKind::kGitConfig, "",
                        first + "\n" + std::string(kEvil), path),
                  ElementsAre(first, "core.fsmonitor = evil"))
          << path;
    }
  }
  EXPECT_THAT(Lines(ContentKind::kGitConfig, "", commit + "\n"),
              ElementsAre(commit));
  // The same first line in the base hides nothing.
  EXPECT_THAT(
      Lines(ContentKind::kGitConfig, "bad\n", "bad\n" + std::string(kEvil)),
      ElementsAre("core.fsmonitor = evil"));
}

TEST(GitRedirectsTest, AreThoseInTheWorkspace) {
  const GitRedirects redirects = RedirectsOf(
      "[core]\nhooksPath = .githooks/\nhooksPath = /home/u/ws/b\n"
      "hooksPath = .\nhooksPath = ~/c\nhooksPath = /etc/d\n"
      "[include]\npath = ../.gitconfig\npath = x\npath = ../../out\n"
      "[includeIf \"onbranch:a\"]\npath = ../b/c\n",
      {.path = ".git/config", .workspace = "/home/u/ws"});
  EXPECT_THAT(redirects.hooks, ElementsAre(".githooks", "b", "~/c"));
  EXPECT_THAT(redirects.settings, ElementsAre(".gitconfig", ".git/x", "b/c"));
}

TEST(GitFileTest, LeadsOnlyToTheOwnRepository) {
  const auto lines = [](std::string_view text, std::string_view path) {
    return Lines(ContentKind::kGitFile, "", text, path);
  };
  EXPECT_THAT(lines("gitdir: ../.git/modules/lib\n", "lib/.git"), IsEmpty());
  EXPECT_THAT(lines("gitdir: /home/u/ws/.git/worktrees/t\n", "t/.git"),
              IsEmpty());
  EXPECT_THAT(lines("../..\n", ".git/worktrees/t/commondir"), IsEmpty());
  EXPECT_THAT(lines("gitdir: ../src\n", "lib/.git"),
              ElementsAre("gitdir: ../src"));
  for (const std::string_view text :
       {"gitdir: ../../.git/modules/x", "gitdir: /home/u/ws2/.git/modules/x",
        "gitdir: /tmp/.git", "gitdir: ../evil/.git/modules/x",
        "gitdir: ../.git/modules/x/refs/heads/y",
        "gitdir: ../.git/modules/../../evil", ""}) {
    const bool is_empty = text.empty();
    EXPECT_EQ(lines(text, "lib/.git").empty(), is_empty) << text;
  }
}

TEST(GitFileTest, WhatIsNotSureIsHeld) {
  using std::string_view_literals::operator""sv;
  const auto leads = [](std::string_view text, std::string_view path) {
    return Lines(ContentKind::kGitFile, "", text, path).empty();
  };
  EXPECT_TRUE(leads("gitdir: ../../.git/modules/a/b\n", "x/lib/.git"));
  for (const std::string_view text :
       {"gitdir: ../evil\0/../.git/modules/x\n"sv,
        "gitdir: ../.git/modules/x\0\n"sv, "gitdir: ../.git/modules/x\ny\n"sv,
        "gitdir: ../link/../.git/modules/x\n"sv,
        "gitdir: /home/u/ws/link/../.git/modules/x\n"sv,
        "gitdir: ../.git/modules/x/Refs/Heads/m\n"sv,
        "gitdir: ../.git/modules/x/LOGS/m\n"sv,
        "gitdir: ../.git/worktrees/a/b\n"sv, "gitdir: ../.git/worktrees\n"sv,
        "gitdir: ../.GIT\n"sv}) {
    EXPECT_FALSE(leads(text, "lib/.git")) << text;
  }
}

TEST(GitBareTest, HoldsSettingsAndPlaces) {
  EXPECT_THAT(Lines(ContentKind::kGitBare, "", kInit, "docs/config"),
              IsEmpty());
  EXPECT_THAT(Lines(ContentKind::kGitBare, "", "[core]\n worktree = .\n",
                    "docs/config"),
              ElementsAre("core.worktree = ."));
}

TEST(PythonPathTest, OnlyLinesThatPythonRunsMatter) {
  const auto lines = [](std::string_view before, std::string_view after) {
    return Lines(ContentKind::kPythonPath, before, after, "x.pth");
  };
  EXPECT_THAT(lines("", "../src\n# import x\nimportant\n"), IsEmpty());
  EXPECT_THAT(lines("", "../src\nimport os\n"), ElementsAre("import os"));
  EXPECT_THAT(lines("", "import\tos"), ElementsAre("import\tos"));
  EXPECT_THAT(lines("", "x\rimport os\n"), ElementsAre("import os"));
  EXPECT_THAT(lines("", "x\x0cimport os\n"), ElementsAre("import os"));
  EXPECT_THAT(lines("import a\n", "import a\nimport b\n"),
              ElementsAre("import b"));
  EXPECT_THAT(Lines(ContentKind::kPythonPath, "a\n", "a\nb\n",
                    "lib/site-packages/sitecustomize.py"),
              ElementsAre("b"));
}

TEST(AnyContentTest, NewLinesMatter) {
  EXPECT_THAT(Lines(ContentKind::kAny, "a\nb\n", "b\n\nc\nb\n"),
              ElementsAre("c", "b"));
}

}  // namespace
}  // namespace txfs::policy
