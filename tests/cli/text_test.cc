#include "cli/output/text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/mount_helper.h"
#include "cli/mount/mount_options.h"
#include "cli/output/json.h"
#include "cli/output/paths.h"
#include "temp_tree.h"

namespace txfs::cli {
namespace {

TEST(TextTest, KnowsUtf8) {
  for (const char* good : {"", "a", "\xC3\xA9", "\xE2\x82\xAC",
                           "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\xFF", "\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xE2\x82", "a\xF0\x9F\x98"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
    EXPECT_TRUE(IsUtf8(ToUtf8(bad)));
  }
}

TEST(TextTest, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(EscapeControls("a\n\x1B[31m\x7F\xFF\xC2\x9Bz\xC3\xA9"),
            "a\\n\\033[31m\\177\\377\\302\\233z\xC3\xA9");
}

TEST(TextTest, EscapesWhatIsNotSeen) {
  EXPECT_EQ(EscapeControls("a\u202Etxt.exe"), "a\\342\\200\\256txt.exe");
  EXPECT_EQ(EscapeControls("\u2066\u200B\uFEFF\u061C\U000E0041"),
            "\\342\\201\\246\\342\\200\\213\\357\\273\\277\\330\\234"
            "\\363\\240\\201\\201");
  EXPECT_EQ(EscapeControls("\u65E5\u0627\u2014\U0001F600"),
            "\u65E5\u0627\u2014\U0001F600")
      << "what is seen, in whichever direction";
}

TEST(TextTest, EscapesWhatIsNotSeenInJsonAndStaysTheSame) {
  const std::string name = "a\u202Eb\xC2\x9B[2J\x7F\n\U000E0041 \u65E5";
  const Document document{{"name", name}};
  const std::string text = Dump(document);
  EXPECT_EQ(text,
            "{\"name\":\"a\\u202eb\\u009b[2J\\u007f\\n\\udb40\\udc41 "
            "\u65E5\"}");
  EXPECT_EQ(Json::parse(text)["name"], name);
}

TEST(TextTest, QuotesPathsAsGitDoes) {
  EXPECT_EQ(QuotePath("a b'c"), "a b'c");
  EXPECT_EQ(QuotePath("q\"\\\t\xC3\xA9"), R"("q\"\\\t\303\251")");
}

TEST(TextTest, QuotesForShells) {
  EXPECT_EQ(QuoteShell("/a/b-c_1"), "/a/b-c_1");
  EXPECT_EQ(QuoteShell("it's $x"), "'it'\\''s $x'");
  EXPECT_EQ(QuoteShell(""), "''");
}

TEST(TextTest, Joins) {
  EXPECT_EQ(Join(std::vector<std::string>()), "");
  EXPECT_EQ(Join(std::vector{1, 2}, [](int n) { return std::to_string(n); }),
            "1, 2");
}

TEST(TextTest, FormatsSizesCountsAndTimes) {
  EXPECT_EQ(HumanSize(1023), "1023 B");
  EXPECT_EQ(HumanSize(1536), "1.5 KiB");
  EXPECT_EQ(HumanSize(~0ULL), "16.0 EiB");
  EXPECT_EQ(Count(1, "change"), "1 change");
  EXPECT_EQ(Count(0, "change"), "0 changes");
  EXPECT_EQ(UtcTime({.sec = 0, .nsec = 6}), "1970-01-01T00:00:00.000000006Z");
  EXPECT_EQ(ErrnoName(0), "ok");
  EXPECT_EQ(ErrnoName(1), "EPERM");
  EXPECT_EQ(ErrnoName(99999), "E99999");
}

TEST(PathsTest, ResolveWhatIsThereAndWhatIsNot) {
  const TempTree tree(
      {{"d/f", {}}, {"link", {.mode = 0120000, .content = "d"}}});
  const std::string& root = tree.path();
  struct {
    std::string path, expected;
  } const cases[] = {
      {"", root},
      {".", root},
      {"d//./f", "/d/f"},
      {"link/f", "/d/f"},
      {"link/..", ""},
      {"gone/deep/../x", "/gone/x"},
      {"link/gone", "/d/gone"},
      {"d/f/", "/d/f"},
  };
  for (const auto& [path, expected] : cases) {
    EXPECT_EQ(ResolvePath(root, path),
              expected.starts_with(root) ? expected : root + expected)
        << path;
  }
  EXPECT_EQ(ResolveParent(root, "link"), root + "/link");
  EXPECT_EQ(ResolveParent(root, "link/f"), root + "/d/f");
  EXPECT_EQ(ResolveParent(root, "d/.."), root);
  EXPECT_EQ(ResolvePath("/", "../.."), "/");
}

TEST(PathsTest, AreWithinByComponents) {
  EXPECT_TRUE(IsWithin("/a/b", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/a"));
  EXPECT_TRUE(IsWithin("/a", "/"));
  EXPECT_FALSE(IsWithin("/ab", "/a"));
  EXPECT_FALSE(IsWithin("/", "/a"));
  EXPECT_EQ(RelativeTo("/a/b/c", "/a"), "b/c");
  EXPECT_EQ(RelativeTo("/a", "/a"), "");
}

TEST(OptionsTest, LaterOnesOverrideAndForeignOnesAreIgnored) {
  MountFlags flags;
  ASSERT_TRUE(ParseMountOptions(
      "ro,noauto,user,x-systemd.automount,_netdev,nofail,noatime,nosuid,atime,"
      "suid,nosuid,,fsname=a\\,b,store=/"
      "s=t,name=n,policy=/"
      "p,without_rule=a,without_rule=b,no_default_policy,default_permissions,"
      "rw,user=joe,policy=q",
      flags));
  ASSERT_TRUE(ParseMountOptions("allow_other", flags));
  EXPECT_EQ(flags, (MountFlags{.read_only = false,
                               .allow_other = true,
                               .fsname = "a,b",
                               .store = "/s=t",
                               .name = "n",
                               .policies = {"/p", "q"},
                               .no_default_policy = true,
                               .without_rules = {"a", "b"},
                               .kernel = {"atime", "nosuid"}}));
}

TEST(OptionsTest, ARemountHasWhatTheMountTableShows) {
  MountFlags flags;
  ASSERT_TRUE(ParseMountOptions(
      "rw,nosuid,relatime,user_id=0,group_id=0,default_permissions,remount,"
      "dev,suid,ro",
      flags));
  EXPECT_EQ(flags, (MountFlags{.remount = true,
                               .read_only = true,
                               .kernel = {"relatime", "dev", "suid"}}));
}

TEST(OptionsTest, UnknownOnesAreUsageErrors) {
  for (const char* bad : {"nope", "fsname=", "store", "policy=", "without_rule",
                          "ro=1", "ro nosuid", "strictatime"}) {
    MountFlags flags;
    const Status parsed = ParseMountOptions(bad, flags);
    ASSERT_FALSE(parsed) << bad;
    EXPECT_EQ(parsed.error().kind, ErrorKind::kUsage);
  }
}

TEST(HelperTest, TakesWhatMountGives) {
  const auto call =
      ParseMountHelper({"/w", "/m", "-sn", "-v", "-t", "fuse.txfs", "-o",
                        "rw,noexec", "-ofsname=x"});
  ASSERT_TRUE(call) << call.error().ToString();
  EXPECT_EQ(call->arguments.workspace, "/w");
  EXPECT_EQ(call->arguments.mountpoint, "/m");
  EXPECT_EQ(call->arguments.options,
            (std::vector<std::string>{"rw,noexec", "fsname=x"}));
  EXPECT_FALSE(call->fake);
  EXPECT_FALSE(ParseMountHelper({"/w"}));
  EXPECT_FALSE(ParseMountHelper({"/w", "/m", "-o"}));
  EXPECT_FALSE(ParseMountHelper({"/w", "/m", "-q"}));
}

}  // namespace
}  // namespace txfs::cli
