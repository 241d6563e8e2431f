#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

constexpr const char* kHoldingRules = R"(
schema = 1

[[fs]]
id = "deploy"
path = "/deploy/**"
at = "commit"
reason = "it runs on the servers"
suggest = "say what changed"

[[fs]]
id = "scripts"
path = "*.sh"
at = "commit"
ops = ["make", "content", "remove"]
reason = "it is run"
suggest = "say what changed"

[[fs]]
id = "tree"
path = "/tree"
type = "directory"
at = "commit"
ops = ["make", "remove"]
reason = "it is a tree"
suggest = "say why"

[[fs]]
id = "settings"
path = "/settings"
at = "commit"
content = "git-config"
reason = "git runs what it names"
suggest = "say why"

[[fs]]
id = "had"
path = "/had/**"
at = "commit"
layer = "base"
reason = "it was there before"
suggest = "say why"
)";

/// What rules at the commit hold, by what the base would get.
class HeldTest : public ConformanceTest {
 protected:
  /// Ends the preparation of the base.
  Driver& held() {
    Driver& driver = fs();
    if (!uses_rules_) EXPECT_OK(driver.UsePolicy(kHoldingRules));
    uses_rules_ = true;
    return driver;
  }

  CommitOutcome Review(const CommitChoice& choice) {
    auto outcome = held().Review(choice);
    EXPECT_OK(outcome);
    return std::move(outcome).value_or(CommitOutcome{});
  }
  vector<string> Held() { return Review({.dry_run = true}).held; }
  vector<string> Lines() { return Review({.dry_run = true}).lines; }
  void ExpectCommitted(const CommitChoice& choice) {
    EXPECT_TRUE(Review(choice).committed);
    AcceptBase();
  }
  /// Nothing is committed, and `still` is held. TearDown looks at the base.
  void ExpectStopped(const CommitChoice& choice, const vector<string>& still) {
    const CommitOutcome outcome = Review(choice);
    EXPECT_FALSE(outcome.committed);
    EXPECT_EQ(outcome.held, still);
  }

  /// The checks of the suite commit everything.
  void TearDown() override {
    if (uses_rules_) EXPECT_OK(fs().UsePolicy("schema = 1\n"));
    ConformanceTest::TearDown();
  }

 private:
  bool uses_rules_ = false;
};
FOR_DRIVERS(HeldTest, Needs::kStore);

TEST_P(HeldTest, EachKindOfChangeIsHeld) {
  base().File("deploy/attributes", "a");
  base().File("deploy/changed", "old\n");
  base().File("deploy/removed", "r");
  base().File("deploy/type", "t");
  base().Symlink("old", "deploy/target");
  base().File("free", "f");
  ASSERT_OK(held().Chmod("deploy/attributes", 0755));
  ASSERT_OK(fs().WriteFile("deploy/changed", "old\nnew\n"));
  ASSERT_OK(fs().Unlink("deploy/removed"));
  ASSERT_OK(fs().Unlink("deploy/type"));
  ASSERT_OK(fs().Symlink("elsewhere", "deploy/type"));
  ASSERT_OK(fs().Unlink("deploy/target"));
  ASSERT_OK(fs().Symlink("new", "deploy/target"));
  ASSERT_OK(fs().WriteFile("deploy/made", "made\n"));
  ASSERT_OK(fs().Mkfifo("deploy/fifo", 0644));
  ASSERT_OK(fs().WriteFile("free", "free"));
  const vector<string> all = {
      "deploy added deploy/fifo",      "deploy added deploy/made",
      "deploy added deploy/target",    "deploy attributes deploy/attributes",
      "deploy changed deploy/changed", "deploy removed deploy/removed",
      "deploy removed deploy/type"};
  EXPECT_EQ(Held(), all);
  EXPECT_EQ(
      Lines(),
      (vector<string>{"deploy deploy/attributes: mode 0644 -> 0755",
                      "deploy deploy/changed: new", "deploy deploy/made: made",
                      "deploy deploy/target: -> new"}));
  ExpectStopped({}, all);
}

TEST_P(HeldTest, WhatTheBaseWouldNotGetIsNotHeld) {
  base().File("deploy/back", "b");
  base().File("deploy/empty", "");
  base().File("deploy/empty-mode", "");
  base().File("deploy/equal", "equal");
  base().File("deploy/mode", "m");
  base().File("deploy/moved", "m");
  base().File("deploy/rewritten", "r");
  base().Symlink("target", "deploy/symlink");
  ASSERT_OK(held().WriteFile("deploy/equal", "equal"));
  ASSERT_OK(fs().Chmod("deploy/mode", 0755));
  ASSERT_OK(fs().Chmod("deploy/mode", 0644));
  ASSERT_OK(fs().Rename("deploy/moved", "away", 0));
  ASSERT_OK(fs().Rename("away", "deploy/moved", 0));
  // As an editor writes it.
  ASSERT_OK(fs().WriteFile("new", "r"));
  ASSERT_OK(fs().Rename("new", "deploy/rewritten", 0));
  ASSERT_OK(fs().Unlink("deploy/back"));
  ASSERT_OK(fs().WriteFile("deploy/back", "b"));
  ASSERT_OK(fs().Unlink("deploy/symlink"));
  ASSERT_OK(fs().Symlink("target", "deploy/symlink"));
  ASSERT_OK(fs().WriteFile("deploy/gone", "gone"));
  ASSERT_OK(fs().Unlink("deploy/gone"));
  ASSERT_OK(fs().WriteFile("deploy/went", "gone"));
  ASSERT_OK(fs().Rename("deploy/went", "went", 0));
  ASSERT_OK(fs().Mkdir("tree", 0755));
  ASSERT_OK(fs().Rmdir("tree"));
  // Placeholders.
  ASSERT_OK(fs().WriteFile("deploy/placeholder", ""));
  ASSERT_OK(fs().Unlink("deploy/empty"));
  ASSERT_OK(fs().Chmod("deploy/empty-mode", 0600));
  EXPECT_EQ(Held(), vector<string>{});
  ExpectCommitted({});
}

TEST_P(HeldTest, AFileThatGetsOrLosesAllItsContentIsHeld) {
  base().File("deploy/filled", "");
  base().File("deploy/replaced", "r");
  base().File("deploy/truncated", "t");
  ASSERT_OK(held().WriteFile("deploy/filled", "f"));
  ASSERT_OK(fs().WriteFile("new", ""));
  ASSERT_OK(fs().Rename("new", "deploy/replaced", 0));
  ASSERT_OK(fs().Truncate("deploy/truncated", 0));
  EXPECT_EQ(Held(), (vector<string>{"deploy changed deploy/filled",
                                    "deploy changed deploy/replaced",
                                    "deploy changed deploy/truncated"}));
}

TEST_P(HeldTest, AMoveIsJudgedAtBothEnds) {
  base().File("deploy/out", "out");
  base().File("deploy/within", "within");
  base().File("deploy/over", "over");
  base().File("in", "in\n");
  base().File("replacing", "replacing\n");
  ASSERT_OK(held().Rename("deploy/out", "out", 0));
  ASSERT_OK(fs().Rename("deploy/within", "deploy/renamed", 0));
  ASSERT_OK(fs().Rename("in", "deploy/in", 0));
  ASSERT_OK(fs().Rename("replacing", "deploy/over", 0));
  EXPECT_EQ(Held(),
            (vector<string>{
                "deploy added deploy/in", "deploy added deploy/renamed",
                "deploy changed deploy/over", "deploy removed deploy/out"}));
}

TEST_P(HeldTest, ADirectoryTakesWhatIsHeldAlong) {
  base().File("src/deep/run.sh", "run\n");
  base().File("src/deep/free", "free");
  base().File("deploy/a/x", "x\n");
  base().File("had/x", "x");
  ASSERT_OK(held().Rename("src", "lib", 0));
  ASSERT_OK(fs().Rename("deploy/a", "a", 0));
  ASSERT_OK(fs().Rename("had", "has", 0));
  EXPECT_EQ(Held(),
            (vector<string>{"deploy removed deploy/a/x", "had removed had/x",
                            "scripts added lib/deep/run.sh"}));
  ASSERT_OK(fs().WriteFile("lib/deep/run.sh", "run\nmore\n"));
  ASSERT_OK(fs().WriteFile("a/x", "x\nmore\n"));
  EXPECT_EQ(Held(),
            (vector<string>{"deploy removed deploy/a/x", "had removed had/x",
                            "scripts changed lib/deep/run.sh"}));
  // A file that is no longer below it has nothing to do with it.
  ASSERT_OK(fs().Unlink("lib/deep/run.sh"));
  ASSERT_OK(fs().Rename("a", "deploy/a", 0));
  ASSERT_OK(fs().WriteFile("deploy/a/x", "x\n"));
  ASSERT_OK(fs().Rename("has", "had", 0));
  EXPECT_EQ(Held(), vector<string>{"scripts removed src/deep/run.sh"});
}

TEST_P(HeldTest, OfANewDirectoryItsFilesAreHeld) {
  ASSERT_OK(held().Mkdir("deploy", 0755));
  ASSERT_OK(fs().Mkdir("deploy/deep", 0755));
  EXPECT_EQ(Held(), vector<string>{});
  ASSERT_OK(fs().WriteFile("deploy/deep/file", "x"));
  ASSERT_OK(fs().WriteFile("deploy/deep/empty", ""));
  ASSERT_OK(fs().Mkdir("tree", 0755));
  ASSERT_OK(fs().WriteFile("tree/free", "x"));
  EXPECT_EQ(Held(), (vector<string>{"deploy added deploy/deep/file",
                                    "tree added tree"}));
  // Wherever it was made.
  ASSERT_OK(fs().Rename("deploy", "made", 0));
  ASSERT_OK(fs().Rename("tree", "deploy", 0));
  EXPECT_EQ(Held(), vector<string>{"deploy added deploy/free"});
}

TEST_P(HeldTest, AFileIsJudgedByAllItsNames) {
  base().File("free", "old");
  base().Directory("deploy");
  base().HardLink("free", "deploy/linked");
  base().File("other", "other");
  // No process has looked up the other name.
  ASSERT_OK(held().WriteFile("free", "new"));
  ASSERT_OK(fs().Link("other", "deploy/other"));
  EXPECT_EQ(Held(), (vector<string>{"deploy added deploy/other",
                                    "deploy changed deploy/linked"}));
  ASSERT_OK(fs().Unlink("deploy/other"));
  ASSERT_OK(fs().Chmod("free", 0600));
  EXPECT_EQ(Held(), vector<string>{"deploy changed deploy/linked"});
  ASSERT_OK(fs().WriteFile("free", "old"));
  EXPECT_EQ(Held(), vector<string>{"deploy attributes deploy/linked"});
  ASSERT_OK(fs().Chmod("free", 0644));
  ASSERT_OK(fs().Unlink("deploy/linked"));
  EXPECT_EQ(Held(), vector<string>{"deploy removed deploy/linked"});
}

TEST_P(HeldTest, OnlyWhatTheBaseHasIsOfTheBase) {
  base().File("had/x", "x");
  ASSERT_OK(held().WriteFile("had/x", "new"));
  ASSERT_OK(fs().WriteFile("had/new", "new"));
  EXPECT_EQ(Held(), vector<string>{"had changed had/x"});
}

TEST_P(HeldTest, SettingsOfGitAreHeldByWhatTheyDo) {
  base().File("settings", "[core]\n\tbare = false\n");
  ASSERT_OK(held().WriteFile("settings",
                             "[core]\n\tbare = false\n[user]\n\tname = A\n"));
  EXPECT_EQ(Held(), vector<string>{});
  ASSERT_OK(fs().WriteFile("settings",
                           "[core]\n\tbare = false\n\tfsmonitor = ./evil\n"));
  EXPECT_EQ(Held(), vector<string>{"settings changed settings"});
  EXPECT_EQ(Lines(),
            vector<string>{"settings settings: core.fsmonitor = ./evil"});
}

TEST_P(HeldTest, ARuleOrAPathIsAccepted) {
  base().File("deploy/a/x", "x");
  base().File("run.sh", "run");
  ASSERT_OK(held().WriteFile("deploy/a/x", "X"));
  ASSERT_OK(fs().WriteFile("deploy/a/y", "y"));
  ASSERT_OK(fs().WriteFile("deploy/b", "b"));
  ASSERT_OK(fs().WriteFile("run.sh", "RUN"));
  ExpectStopped({.rules = {"deploy"}}, {"scripts changed run.sh"});
  ExpectStopped({.rules = {"scripts"}, .accepted_paths = {"deploy/a"}},
                {"deploy added deploy/b"});
  ExpectStopped({.accepted_paths = {"deploy/a/x", "run.sh"}},
                {"deploy added deploy/a/y", "deploy added deploy/b"});
  EXPECT_FALSE(held().Review({.accepted_paths = {"deploy/c"}}));
  EXPECT_FALSE(held().Review({.rules = {"depl"}}));
  ExpectCommitted({.rules = {"deploy"}, .accepted_paths = {"run.sh"}});
  EXPECT_EQ(base().Read("deploy/a/x"), "X");
  EXPECT_EQ(base().Read("run.sh"), "RUN");
  EXPECT_EQ(Held(), vector<string>{});
}

TEST_P(HeldTest, OfSeveralRulesAllAreAccepted) {
  base().File("deploy/run.sh", "run");
  ASSERT_OK(held().WriteFile("deploy/run.sh", "RUN"));
  EXPECT_EQ(Held(), (vector<string>{"deploy changed deploy/run.sh",
                                    "scripts changed deploy/run.sh"}));
  ExpectStopped({.rules = {"deploy"}}, {"scripts changed deploy/run.sh"});
  ExpectStopped({.rules = {"scripts"}}, {"deploy changed deploy/run.sh"});
  ExpectCommitted({.accepted_paths = {"deploy/run.sh"}});
}

TEST_P(HeldTest, TheRestIsCommittedWithoutWhatIsHeld) {
  base().File("deploy/x", "x");
  base().File("deploy/removed", "r");
  base().File("free", "free");
  base().File("moved", "m");
  ASSERT_OK(held().WriteFile("deploy/x", "X"));
  ASSERT_OK(fs().Unlink("deploy/removed"));
  ASSERT_OK(fs().WriteFile("free", "FREE"));
  ASSERT_OK(fs().WriteFile("deploy/empty", ""));
  ASSERT_OK(fs().Rename("moved", "elsewhere", 0));
  ASSERT_OK(fs().Mkdir("new", 0755));
  ASSERT_OK(fs().WriteFile("new/run.sh", "run"));
  ASSERT_OK(fs().WriteFile("new/free", "free"));
  const vector<string> all = {"deploy changed deploy/x",
                              "deploy removed deploy/removed",
                              "scripts added new/run.sh"};
  const CommitOutcome outcome = Review({.without_held = true});
  AcceptBase();
  EXPECT_TRUE(outcome.committed);
  EXPECT_EQ(outcome.held, all);
  EXPECT_EQ(base().Read("deploy/x"), "x");
  EXPECT_EQ(base().Read("deploy/removed"), "r");
  EXPECT_EQ(base().Read("free"), "FREE");
  EXPECT_EQ(base().Read("new/free"), "free");
  EXPECT_TRUE(base().Exists("elsewhere"));
  EXPECT_TRUE(base().Exists("deploy/empty"));
  EXPECT_FALSE(base().Exists("new/run.sh"));
  EXPECT_EQ(Held(), all);
  EXPECT_EQ(Content("new/run.sh"), "run");
  // Some of it is accepted later.
  EXPECT_TRUE(
      Review({.accepted_paths = {"new"}, .without_held = true}).committed);
  AcceptBase();
  EXPECT_EQ(base().Read("new/run.sh"), "run");
  EXPECT_EQ(Held(), (vector<string>{"deploy changed deploy/x",
                                    "deploy removed deploy/removed"}));
}

TEST_P(HeldTest, WhatDependsOnAHeldChangeStaysWithIt) {
  base().File("in", "in");
  base().File("deploy/x", "x");
  base().File("deploy/y", "y");
  base().File("src/deep/run.sh", "run");
  base().File("linked", "old");
  base().HardLink("linked", "deploy/linked");
  base().File("free", "free");
  ASSERT_OK(held().Rename("in", "deploy/in", 0));
  ASSERT_OK(fs().WriteFile("in", "another"));
  ASSERT_OK(fs().Rename("deploy/x", "x", 0));
  ASSERT_OK(fs().Rename("src", "lib", 0));
  ASSERT_OK(fs().WriteFile("lib/new", "new"));
  ASSERT_OK(fs().WriteFile("linked", "new"));
  ASSERT_OK(fs().WriteFile("free", "FREE"));
  const vector<string> all = {
      "deploy added deploy/in", "deploy changed deploy/linked",
      "deploy removed deploy/x", "scripts added lib/deep/run.sh"};
  EXPECT_EQ(Held(), all);
  ExpectCommitted({.without_held = true});
  EXPECT_EQ(base().Read("in"), "in");
  EXPECT_EQ(base().Read("deploy/x"), "x");
  EXPECT_EQ(base().Read("linked"), "old");
  EXPECT_EQ(base().Read("src/deep/run.sh"), "run");
  EXPECT_FALSE(base().Exists("lib"));
  EXPECT_FALSE(base().Exists("x"));
  EXPECT_EQ(base().Read("free"), "FREE");
  EXPECT_EQ(Content("in"), "another");
  EXPECT_EQ(Content("lib/new"), "new");
  EXPECT_EQ(Held(), all);
}

TEST_P(HeldTest, APartIsJudgedByItself) {
  base().File("deploy/x", "x");
  base().File("src/run.sh", "run");
  base().File("src/free", "free");
  base().File("in", "in");
  ASSERT_OK(held().WriteFile("deploy/x", "X"));
  ASSERT_OK(fs().WriteFile("src/run.sh", "RUN"));
  ASSERT_OK(fs().WriteFile("src/free", "FREE"));
  ASSERT_OK(fs().Rename("in", "deploy/in", 0));
  ExpectStopped({.paths = {"src"}}, {"scripts changed src/run.sh"});
  // The other end of a move is in the part, too.
  ExpectStopped({.paths = {"in"}}, {"deploy added deploy/in"});
  ExpectCommitted({.paths = {"src/free"}});
  EXPECT_EQ(base().Read("src/free"), "FREE");
  ExpectCommitted({.paths = {"src"}, .rules = {"scripts"}});
  EXPECT_EQ(base().Read("src/run.sh"), "RUN");
  EXPECT_EQ(Held(), (vector<string>{"deploy added deploy/in",
                                    "deploy changed deploy/x"}));
}

TEST_P(HeldTest, WhatTheBaseGotFromOthersIsNotHeld) {
  base().File("deploy/theirs", "old");
  base().File("free", "free");
  ASSERT_OK(held().WriteFile("deploy/theirs", "ours"));
  ASSERT_OK(fs().WriteFile("free", "FREE"));
  base().File("deploy/theirs", "theirs");
  AcceptBase();
  ExpectCommitted({.takes_theirs = true});
  EXPECT_EQ(base().Read("deploy/theirs"), "theirs");
  EXPECT_EQ(base().Read("free"), "FREE");
}

TEST_P(HeldTest, WhatIsTakenBackIsNotHeld) {
  base().File("deploy/x", "x");
  ASSERT_OK(held().MakeSavepoint("before"));
  ASSERT_OK(fs().WriteFile("deploy/x", "X"));
  EXPECT_EQ(Held(), vector<string>{"deploy changed deploy/x"});
  ASSERT_OK(fs().Rollback("before"));
  EXPECT_EQ(Held(), vector<string>{});
}

}  // namespace
}  // namespace txfs::testing
