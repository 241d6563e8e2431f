#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fs/overlay/overlay.h"
#include "policy/load.h"
#include "policy/sources.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr std::string_view kExampleRules = R"(
schema = 1

[[fs]]
id = "hooks"
path = "**/.git/hooks/**"
reason = "git runs what is there"
suggest = "ask"

[[fs]]
id = "secret"
path = ".env*"
errno = "EROFS"
reason = "a secret"
suggest = "ask"

[[fs]]
id = "kept"
path = "kept/**"
ops = ["remove"]
layer = "base"
reason = "it was there before"
suggest = "leave it"

[[fs]]
id = "content"
path = "/content"
ops = ["content"]
reason = "it is to stay as it is"
suggest = "write another"

[[fs]]
id = "keys"
path = "*.pem"
ops = ["make"]
layer = "new"
reason = "keys are made elsewhere"
suggest = "ask"

[[fs]]
id = "noattr"
path = "/noattr"
ops = ["attributes"]
reason = "attributes"
suggest = "ask"

[[fs]]
id = "hers"
path = "/hers"
uid = 12345
reason = "it is hers"
suggest = "ask"

[[fs]]
id = "ours"
path = "/ours"
unless = { uid = [0, 12345] }
reason = "it is ours"
suggest = "ask"

[[fs]]
id = "linkless"
path = "**/conf"
type = "symlink"
ops = ["make"]
reason = "it is no link"
suggest = "make a directory"

[[fs]]
id = "goes-along"
path = "*.key"
ops = ["remove"]
with_directory = false
unless = { path = "trash/**" }
reason = "it is to stay one"
suggest = "leave it"

[[fs]]
id = "no-unlink"
path = "stays"
ops = ["unlink", "rename"]
reason = "it is to stay"
suggest = "leave it"

[[fs]]
id = "watched"
path = "watched"
action = "audit"
reason = "somebody wants to know"
suggest = "go on"
)";

std::shared_ptr<const policy::Policy> Rules(std::string_view text) {
  std::vector<policy::Loaded> files;
  auto loaded = policy::Load(text, "rules.toml");
  if (!loaded) ADD_FAILURE() << loaded.error().ToString();
  if (loaded) files.push_back(std::move(*loaded));
  auto policy = policy::Combine(std::move(files));
  if (!policy) ADD_FAILURE() << policy.error().ToString();
  return policy ? *policy : nullptr;
}

/// What somebody tries, with a protected path.
struct Attempt {
  string name;
  std::function<Status(Driver& fs, const string& path)> run;
};

class PolicyTest : public ::testing::Test {
 protected:
  PolicyTest() : base_(scratch_.path() + "/ws") {
    EXPECT_EQ(mkdir(base_.root().c_str(), 0755), 0);
    base_.File(".git/hooks/h", "a hook");
    base_.Directory("other");
    base_.File(".env", "a secret");
    base_.Symlink(".git/hooks/h", "soft");
    base_.File("free", "anything");
    base_.File("dir/f", "f");
    base_.File("plain/hooks/f", "f");
    base_.File("kept/deep/old", "old");
    base_.File("watched", "watched");
    base_.File("content", "content");
    base_.File("hers", "content");
    base_.File("ours", "content");
    base_.SetTimes();
    auto started =
        CoreDriver::Start(base_.root(), {.policy = Rules(kExampleRules)});
    EXPECT_TRUE(started) << started.error().ToString();
    if (started) driver_ = std::move(*started);
    before_ = View();
  }

  CoreDriver& fs() { return *driver_; }
  TreeView View() {
    auto view = ViewWithoutStore(fs());
    EXPECT_TRUE(view) << view.error().ToString();
    return view ? std::move(*view) : TreeView();
  }
  /// The log's last entry, as "OP ERRNO RULE".
  string LastInLog() {
    string last;
    EXPECT_TRUE(fs().workspace().ReadLog(Lsn{1}, [&](const LogEntry& entry) {
      const Change& change = entry.change;
      last = string(OpName(change.op)) + " " + ErrnoName(change.result) + " " +
             change.rule;
      EXPECT_NE(change.policy, 0U);
      return true;
    }));
    return last;
  }
  void ExpectRefused(const Attempt& attempt, const string& path,
                     const string& error, const string& rule) {
    SCOPED_TRACE(attempt.name + " " + path);
    const Status done = attempt.run(fs(), path);
    EXPECT_EQ(done ? "OK" : ErrnoName(done.error().code), error);
    EXPECT_TRUE(LastInLog().ends_with(" " + error + " " + rule)) << LastInLog();
    EXPECT_EQ(Compare(before_, View(), {}), "");
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
  TreeView before_;
};

TEST_F(PolicyTest, LayersTellWhatWasThereBefore) {
  ExpectRefused(
      {.name = "Unlink",
       .run = [](Driver& fs, const string& path) { return fs.Unlink(path); }},
      "kept/deep/old", "EPERM", "kept");
  ExpectRefused(
      {.name = "RenameParent",
       .run = [](Driver& fs,
                 const string& path) { return fs.Rename(path, "moved", 0); }},
      "kept/deep", "EPERM", "kept");
  ASSERT_TRUE(fs().WriteFile("kept/deep/new", "new"));
  ASSERT_TRUE(fs().WriteFile("kept/deep/old", "may be written"));
  EXPECT_TRUE(fs().Unlink("kept/deep/new"));
}

TEST_F(PolicyTest, ARefusedOperationLeavesNoCopyInTheStore) {
  base_.File("old.pem", "a key");
  ASSERT_TRUE(fs().WriteFile("x", "new"));
  ASSERT_TRUE(fs().Unlink("old.pem"));
  EXPECT_EQ(fs().Rename("x", ".env", 0).error().rule, "secret");
  EXPECT_EQ(fs().AppendFile(".env", "more").error().rule, "secret");
  EXPECT_EQ(fs().Truncate(".env", 0).error().rule, "secret");
  EXPECT_EQ(fs().Truncate("content", 3).error().rule, "content");
  EXPECT_EQ(fs().WriteFile("old.pem", "another").error().rule, "keys");
  EXPECT_EQ(fs().Link("x", "old.pem").error().rule, "keys");
  const string preimages = base_.root() + "/.txfs/txn/" +
                           fs().workspace().transaction_id() + "/preimages";
  EXPECT_FALSE(std::filesystem::exists(preimages));
  // One is kept of a change that is accepted.
  ASSERT_TRUE(fs().Rename("x", "free", 0));
  EXPECT_TRUE(std::filesystem::exists(preimages));
}

TEST_F(PolicyTest, AFileWithoutContentMayStandWhereARuleExceptsIt) {
  fs().workspace().UsePolicy(Rules(R"(
schema = 1
[[fs]]
id = "settings"
path = ["settings", "soft"]
ops = ["make", "content", "remove"]
unless = { layer = "empty" }
reason = "it is protected"
suggest = "leave it"
)"));
  const auto refused = [](const Status& done) {
    return !done && done.error().rule == "settings";
  };
  ASSERT_TRUE(fs().WriteFile("settings", ""));
  EXPECT_TRUE(fs().WriteFile("settings", ""));  // opened with O_TRUNC
  EXPECT_TRUE(fs().Truncate("settings", 0));
  EXPECT_TRUE(refused(fs().WriteFile("settings", "x")));
  EXPECT_TRUE(refused(fs().AppendFile("settings", "x")));
  EXPECT_TRUE(refused(fs().Truncate("settings", 5)));
  // Content does not come by another name.
  ASSERT_TRUE(fs().Link("settings", "alias"));
  EXPECT_TRUE(refused(fs().WriteFile("alias", "x")));
  ASSERT_TRUE(fs().Unlink("alias"));
  ASSERT_TRUE(fs().WriteFile("full", "x"));
  EXPECT_TRUE(refused(fs().Rename("full", "settings", 0)));
  EXPECT_TRUE(refused(fs().Rename("full", "settings", RENAME_EXCHANGE)));
  EXPECT_TRUE(fs().Unlink("settings"));
  EXPECT_TRUE(refused(fs().Link("full", "settings")));
  EXPECT_TRUE(refused(fs().Symlink("full", "settings")));
  EXPECT_TRUE(refused(fs().Mkdir("settings", 0755)));
  ASSERT_TRUE(fs().WriteFile("empty", ""));
  EXPECT_TRUE(fs().Rename("empty", "settings", 0));
  // What the base has is no placeholder.
  EXPECT_TRUE(refused(fs().Unlink("soft")));
}

TEST_F(PolicyTest, WhatIsNotMeantIsAllowed) {
  EXPECT_TRUE(fs().WriteFile("plain/hooks/f", "changed"));
  EXPECT_TRUE(fs().Rename("plain", "elsewhere", 0));
  EXPECT_TRUE(fs().Mkdir("dir/.git", 0755));
  EXPECT_TRUE(fs().Mkdir("dir/.git/hooks", 0755));
  EXPECT_TRUE(fs().Rmdir("dir/.git/hooks"));
  EXPECT_TRUE(fs().Unlink("soft"));
}

TEST_F(PolicyTest, TypesHoldHoweverTheNameComesToBe) {
  ASSERT_TRUE(fs().Symlink("anywhere", "link"));
  ASSERT_TRUE(fs().Mkdir("new", 0755));
  ASSERT_TRUE(fs().Symlink("anywhere", "new/conf2"));
  ASSERT_TRUE(fs().Mkdir("conf", 0755));
  before_ = View();
  const auto refused = [&](const char* name, const Status& done) {
    EXPECT_EQ(done ? "OK" : done.error().rule, "linkless") << name;
    EXPECT_EQ(Compare(before_, View(), {}), "") << name;
  };
  refused("symlink", fs().Symlink("anywhere", "dir/conf"));
  refused("rename", fs().Rename("link", "dir/conf", 0));
  refused("exchange", fs().Rename("link", "conf", RENAME_EXCHANGE));
  refused("exchange back", fs().Rename("conf", "link", RENAME_EXCHANGE));
  refused("link", fs().Link("link", "dir/conf"));
  EXPECT_TRUE(fs().Rename("free", "dir/conf", 0)) << "a file";
  EXPECT_TRUE(fs().Rename("conf", "new/conf", 0)) << "a directory";
}

TEST_F(PolicyTest, WhatStaysProtectedMayGoAlongWithItsDirectory) {
  ASSERT_TRUE(fs().Mkdir("app", 0755));
  ASSERT_TRUE(fs().Mkdir("app/deep", 0755));
  ASSERT_TRUE(fs().Mkdir("trash", 0755));
  ASSERT_TRUE(fs().WriteFile("app/deep/tls.key", "key"));
  EXPECT_EQ(fs().Rename("app/deep/tls.key", "app/tls", 0).error().rule,
            "goes-along");
  EXPECT_TRUE(fs().Rename("app", "apps", 0));
  const Status trashed = fs().Rename("apps", "trash/apps", 0);
  ASSERT_FALSE(trashed);
  EXPECT_EQ(trashed.error().rule, "goes-along");
  EXPECT_EQ(fs().ReadFile("apps/deep/tls.key").value_or(""), "key");
}

/// The path of a denial that the rule is about.
TEST_F(PolicyTest, ADenialNamesTheFileThatDecided) {
  const auto because = [&] {
    auto denials = fs().workspace().ReadDenials();
    EXPECT_TRUE(denials && !denials->entries.empty());
    return denials->entries.empty() ? string("none")
                                    : denials->entries.back().change.because;
  };
  EXPECT_FALSE(fs().Rename("kept", "lost", 0));
  EXPECT_EQ(because(), "kept/deep");
  ASSERT_TRUE(fs().Remount());
  EXPECT_EQ(because(), "kept/deep") << "from the tables";
  EXPECT_FALSE(fs().WriteFile("content", "new"));
  EXPECT_EQ(because(), "") << "it is the one that was named";
  EXPECT_FALSE(fs().Rename("free", "made.pem", 0));
  EXPECT_EQ(because(), "");
}

TEST_F(PolicyTest, AMovedFileMakesAName) {
  ASSERT_FALSE(fs().WriteFile("made.pem", "x"));
  ExpectRefused(
      {.name = "RenameTo",
       .run = [](Driver& fs,
                 const string& path) { return fs.Rename("free", path, 0); }},
      "free.pem", "EPERM", "keys");
}

TEST_F(PolicyTest, ALinkMadeInTheTransactionIsAnotherNameAfterARemount) {
  ASSERT_TRUE(fs().Link("content", "elsewhere"));
  for (int i = 0; i < 2; ++i) {
    const auto written = fs().WriteFile("elsewhere", "evil");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, EPERM);
    ASSERT_TRUE(fs().Remount());
  }
  EXPECT_EQ(fs().ReadFile("content").value_or(""), "content");
}

TEST_F(PolicyTest, AnUnlinkedNameIsNotOneThatLosesALink) {
  ASSERT_TRUE(fs().Link("free", "noattr"));
  EXPECT_TRUE(fs().Unlink("noattr"));
}

/// An op is about the name that it is done to; what it does to the others of a
/// file is a matter of their attributes.
TEST_F(PolicyTest, AnotherNameOfAFileMayGoWhereTheOpIsMeant) {
  ASSERT_TRUE(fs().WriteFile("stays", "file"));
  ASSERT_TRUE(fs().Link("stays", "second"));
  ASSERT_TRUE(fs().Link("stays", "replaced"));
  EXPECT_TRUE(fs().Unlink("second"));
  EXPECT_TRUE(fs().Rename("free", "replaced", 0));
  EXPECT_EQ(fs().Unlink("stays").error().rule, "no-unlink");
  EXPECT_EQ(fs().Rename("stays", "away", 0).error().rule, "no-unlink");
}

TEST_F(PolicyTest, RefusedWritesLeaveNothingInTheStore) {
  const auto bytes = fs().StoreBytes();
  ASSERT_TRUE(bytes);
  const auto file = fs().Open("content", O_RDWR, 0);
  ASSERT_TRUE(file);
  for (uint64_t i = 0; i < 20; ++i) {
    ASSERT_FALSE(fs().WriteAt(*file, i << 21, string(100'000, 'x')));
  }
  const auto after = fs().StoreBytes();
  ASSERT_TRUE(after);
  EXPECT_LT(*after, *bytes + 1'000'000);
}

TEST_F(PolicyTest, ADirectoryThatTheBaseLostIsMovedAsAnyOther) {
  ASSERT_TRUE(fs().WriteFile("dir/made", "made"));
  ASSERT_TRUE(fs().Remount());
  std::filesystem::remove_all(base_.root() + "/dir");
  ASSERT_TRUE(fs().Remount());
  EXPECT_TRUE(fs().Rename("dir", "moved", 0));
}

/// What the kernel writes back of a mapping may be anybody's.
TEST_F(PolicyTest, AUserWhoIsNotKnownMayBeAnyThatIsMeant) {
  constexpr Caller kRoot{.pid = 0, .uid = 0, .gid = 0};
  constexpr Caller kNobody{.pid = 1, .uid = kNoUid, .gid = 0, .known = false};
  Filesystem& files = fs().workspace().filesystem();
  const auto write = [&](const Caller& caller, const string& name) {
    const auto node = files.Lookup(kRootIno, name);
    EXPECT_TRUE(node);
    const auto written = files.Write(caller, node->ino, 0, AsBytes("x"), {});
    files.Forget(node->ino, 1);
    return written ? "OK" : written.error().rule;
  };
  EXPECT_EQ(write(kNobody, "hers"), "hers");
  EXPECT_EQ(write(kNobody, "ours"), "ours");
  EXPECT_EQ(write(kRoot, "hers"), "OK");
  EXPECT_EQ(write(kRoot, "ours"), "OK");
}

constexpr std::string_view kPrograms = R"(
schema = 1

[[fs]]
id = "by-program"
path = "free"
unless = { exe = "/test" }
reason = "only that program knows it"
suggest = "ask"

[[fs]]
id = "watched-program"
path = "ours"
exe = "/other"
reason = "that program spoils it"
suggest = "ask"

[[fs]]
id = "noted"
path = ["free", "dir/f"]
action = "audit"
reason = "somebody wants to know"
suggest = "go on"
)";

/// As one that lies where whoever is to be held may have put it; here it is one
/// of a process that there is none of.
TEST_F(PolicyTest, AProgramThatDoesNotCountMayBeAnyAndIsNoExceptionToARule) {
  fs().workspace().UsePolicy(Rules(kPrograms));
  Filesystem& files = fs().workspace().filesystem();
  const auto write = [&](uint32_t pid, const string& name) {
    const Caller caller{.pid = pid, .uid = 0, .gid = 0};
    const auto node = files.Lookup(kRootIno, name);
    EXPECT_TRUE(node);
    const auto written = files.Write(caller, node->ino, 0, AsBytes("x"), {});
    files.Forget(node->ino, 1);
    return written ? "OK" : written.error().rule;
  };
  const auto self = static_cast<uint32_t>(getpid());
  constexpr uint32_t kNone = 0x7FFFFFFF;
  EXPECT_EQ(write(self, "free"), "OK");
  EXPECT_EQ(write(self, "ours"), "OK");
  EXPECT_EQ(write(kNone, "free"), "by-program");
  EXPECT_EQ(write(kNone, "ours"), "watched-program");
  EXPECT_EQ(write(kNone, "hers"), "OK");
}

TEST_F(PolicyTest, NamesOfTxfsAreRefusedWithoutAnyPolicy) {
  fs().workspace().UsePolicy(nullptr);
  const Status made = fs().Mkdir("dir/.txfs", 0755);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().rule, "txfs-own-names");
  EXPECT_EQ(LastInLog(), "mkdir EPERM txfs-own-names");
  ASSERT_TRUE(fs().Remount());
  EXPECT_EQ(LastInLog(), "mkdir EPERM txfs-own-names");
}

/// As a version that did not refuse them left it.
TEST_F(PolicyTest, ACommitRefusesNamesOfTxfsThatAnOldJournalHas) {
  ASSERT_TRUE(fs().Mkdir("dir/x", 0755));
  ASSERT_TRUE(fs().WriteFile("dir/x/policy.toml", "schema = 1"));
  auto& files = dynamic_cast<OverlayFilesystem&>(fs().workspace().filesystem());
  const auto dir = files.Lookup(kRootIno, "dir");
  ASSERT_TRUE(dir);
  const auto made = files.Lookup(dir->ino, "x");
  ASSERT_TRUE(made);
  const DentryValue value{DentryKind::kInode, made->ino};
  Change change;
  change.op = Op::kRename;
  change.path = "dir/x";
  change.new_path = "dir/.txfs";
  change.edits.emplace_back(DentryEdit{dir->ino, "x", value, {}});
  change.edits.emplace_back(DentryEdit{dir->ino, ".txfs", {}, value});
  ASSERT_TRUE(files.journal()->Append(change));
  files.Forget(made->ino, 1);
  files.Forget(dir->ino, 1);
  ASSERT_TRUE(fs().Remount());
  EXPECT_EQ(fs().ReadFile("dir/.txfs/policy.toml").value_or(""), "schema = 1");
  const auto committed = fs().Commit();
  ASSERT_FALSE(committed);
  EXPECT_TRUE(committed.error().message.contains("cannot commit dir/.txfs: "))
      << committed.error().message;
  EXPECT_TRUE(committed.error().hint.contains("`txfs discard` on that path"));
  EXPECT_FALSE(base_.Exists("dir/.txfs"));
  ASSERT_TRUE(fs().Discard());
  EXPECT_TRUE(fs().Commit());
}

TEST_F(PolicyTest, AuditIsNoted) {
  ASSERT_TRUE(fs().Chmod("watched", 0600));
  EXPECT_EQ(LastInLog(), "chmod OK watched");
  ASSERT_TRUE(fs().Chmod("free", 0600));
  EXPECT_EQ(LastInLog(), "chmod OK ");
}

TEST_F(PolicyTest, VerdictsSurviveARemount) {
  ASSERT_TRUE(fs().Chmod("watched", 0600));
  ASSERT_FALSE(fs().Unlink(".env"));
  ASSERT_TRUE(fs().Remount());
  EXPECT_EQ(LastInLog(), "unlink EROFS secret");
}

constexpr std::string_view kTighter = R"(
schema = 1

[[fs]]
id = "free"
path = ["free", "dir/f"]
reason = "not any more"
suggest = "ask"
)";

TEST_F(PolicyTest, AnotherPolicyHoldsAtOnceAlsoForOpenFiles) {
  base_.HardLink("dir/f", "other/f");
  ASSERT_TRUE(fs().Remount());
  const auto file = fs().Open("free", O_RDWR, 0);
  ASSERT_TRUE(file);
  // The names that the base has are searched, and remembered.
  ASSERT_TRUE(fs().Chmod("other/f", 0600));
  ASSERT_TRUE(fs().WriteAt(*file, 0, "before"));
  fs().workspace().UsePolicy(Rules(kTighter));
  const auto written = fs().WriteAt(*file, 0, "after");
  ASSERT_FALSE(written);
  EXPECT_EQ(ErrnoName(written.error().code), "EPERM");
  EXPECT_EQ(LastInLog(), "write EPERM free");
  EXPECT_FALSE(fs().TruncateOf(*file, 0));
  EXPECT_FALSE(fs().Chmod("other/f", 0644));
  EXPECT_EQ(LastInLog(), "chmod EPERM free");
  EXPECT_TRUE(fs().Unlink(".env")) << "what the former one refused";
  EXPECT_EQ(fs().ReadFile("free").value_or(""), "beforeng");
}

constexpr std::string_view kPlace = R"(
schema = 1

[[fs]]
id = "place"
path = "place/**"
ops = ["content"]
reason = "it is to stay as it is"
suggest = "ask"
)";

/// A file of which nobody has looked up the name that a directory above it took
/// to where a rule is about it.
TEST_F(PolicyTest, ANameThatMovedToAProtectedPlaceCountsBeforeItIsSeen) {
  base_.File("moving/in/f", "content");
  base_.HardLink("moving/in/f", "linked");
  ASSERT_TRUE(fs().Remount());
  fs().workspace().UsePolicy(Rules(kPlace));
  // What is where is searched, and remembered.
  ASSERT_TRUE(fs().PatchFile("linked", 0, "C"));
  ASSERT_TRUE(fs().Rename("moving", "place", 0));
  EXPECT_FALSE(fs().PatchFile("linked", 0, "X"));
  EXPECT_EQ(LastInLog(), "write EPERM place");
  ASSERT_TRUE(fs().Rename("place", "elsewhere", 0));
  EXPECT_TRUE(fs().PatchFile("linked", 0, "Y"));
  ASSERT_TRUE(fs().Mkdir("new", 0755));
  ASSERT_TRUE(fs().Rename("elsewhere", "new/e", 0));
  ASSERT_TRUE(fs().Rename("new", "place", 0));
  EXPECT_FALSE(fs().PatchFile("linked", 0, "X"));
  EXPECT_EQ(fs().ReadFile("linked").value_or(""), "Yontent");
}

TEST_F(PolicyTest, TheLogTellsWhichPolicyJudged) {
  const auto judged_by = [&] {
    uint64_t policy = 0;
    EXPECT_TRUE(fs().Chmod("free", 0600));
    EXPECT_TRUE(fs().workspace().ReadLog(Lsn{1}, [&](const LogEntry& entry) {
      policy = entry.change.policy;
      return true;
    }));
    return policy;
  };
  const auto watching = Rules(kExampleRules);
  EXPECT_EQ(judged_by(), watching->hash());
  fs().workspace().UsePolicy(nullptr);
  EXPECT_EQ(judged_by(), 0U);
  fs().workspace().UsePolicy(watching);
  EXPECT_EQ(judged_by(), watching->hash());
}

TEST_F(PolicyTest, AnotherPolicyOutlivesTheTransaction) {
  fs().workspace().UsePolicy(Rules(kTighter));
  ASSERT_TRUE(fs().Discard());
  EXPECT_FALSE(fs().Unlink("free"));
  ASSERT_TRUE(fs().Commit());
  EXPECT_FALSE(fs().Unlink("free"));
}

}  // namespace
}  // namespace txfs::testing
