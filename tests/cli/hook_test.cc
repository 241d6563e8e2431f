#include "cli/hook/hook.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "cli/hook/install.h"
#include "cli/hook/installed.h"
#include "cli/hook/tools.h"
#include "cli/output/json.h"
#include "cli/shell/apply_patch.h"
#include "temp_tree.h"

namespace txfs::cli {
namespace {

/// A home without configuration, and a project outside of any workspace.
class HookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HOME", home_.path().c_str(), 1);
    ::unsetenv("XDG_CONFIG_HOME");
    ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("TXFS_RUN");
  }
  [[nodiscard]] const std::string& project() const { return project_.path(); }

 private:
  TempTree home_, project_;
};

std::string Replaced(std::string text, const std::string& what,
                     const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;
       at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// Whether `found` is as `expected`, in which a string that begins with ~ has
/// only to be contained.
bool IsAsExpected(const Json& expected, const Json& found) {
  if (expected.is_object()) {
    if (!found.is_object() || found.size() != expected.size()) return false;
    for (const auto& [key, value] : expected.items()) {
      if (!found.contains(key) || !IsAsExpected(value, found[key])) {
        return false;
      }
    }
    return true;
  }
  const std::string text =
      expected.is_string() ? expected.get<std::string>() : "";
  if (!text.starts_with('~')) return expected == found;
  return found.is_string() && found.get<std::string>().contains(text.substr(1));
}

TEST_F(HookTest, EachHostGetsTheAnswerThatItObeys) {
  size_t count = 0;
  for (const HookHost& host : HookHosts()) {
    std::ifstream file(TXFS_SOURCE_DIR "/tests/cli/hooks/" +
                       std::string(host.name) + ".jsonl");
    for (std::string line; std::getline(file, line); ++count) {
      const Json fixture = Json::parse(Replaced(line, "@DIR@", project()));
      const std::string what =
          std::string(host.name) + ": " + GetBytes(fixture, "is");
      const HookOutput output =
          AnswerHook(host, fixture.contains("text") ? GetBytes(fixture, "text")
                                                    : fixture["in"].dump());
      const Json& expected = fixture["out"];
      if (expected.is_null()) {
        EXPECT_EQ(output.out, "") << what;
      } else {
        EXPECT_TRUE(IsAsExpected(expected, ParseStrictly(output.out)))
            << what << ": " << output.out;
        EXPECT_EQ(output.out.find('\n'), output.out.size() - 1) << what;
      }
      EXPECT_EQ(output.code, GetInt(fixture, "code")) << what;
      const std::string err = GetBytes(fixture, "err");
      EXPECT_EQ(output.err.empty(), err.empty()) << what << output.err;
      EXPECT_TRUE(output.err.contains(err)) << what << output.err;
    }
  }
  EXPECT_GE(count, 55U);
}

TEST_F(HookTest, ARefusalHasAReasonOnEachHost) {
  for (const HookHost& host : HookHosts()) {
    const HookOutput output = host.refuse("because");
    EXPECT_TRUE((output.out + output.err).contains("because")) << host.name;
    EXPECT_TRUE(output.code == 0 || !output.err.empty()) << host.name;
  }
}

TEST_F(HookTest, BytesThatAreNoTextDoNotBreakTheAnswer) {
  for (const HookHost& host : HookHosts()) {
    HookCall call;
    call.event = host.events.empty() ? "" : host.events.front().name;
    const HookOutput output =
        host.write(call, {Decision::kDeny, "a\xFF\"\n\x1B[31m"});
    EXPECT_TRUE(ParseStrictly(output.out).is_object()) << host.name;
  }
}

TEST(ApplyPatchTest, FindsTheFilesOfAPatch) {
  const auto [files, has_odd_blanks] = FilesInPatch(
      "*** Begin Patch\r\n"
      "*** Add File: a b.txt\r\n"
      "+*** Delete File: not.txt\n"
      " *** Update File: c/d\n"
      "*** Move to: e\n"
      "@@\n"
      "-*** Delete File: nor.txt\n"
      "*** Delete File: /f\n"
      "*** End Patch");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].path, "a b.txt");
  EXPECT_EQ(files[0].what, FileUse::What::kWrite);
  EXPECT_EQ(files[1].path, "c/d");
  EXPECT_EQ(files[1].what, FileUse::What::kMove);
  EXPECT_EQ(files[1].new_path, "e");
  EXPECT_EQ(files[2].path, "/f");
  EXPECT_EQ(files[2].what, FileUse::What::kRemove);
  EXPECT_FALSE(has_odd_blanks);
}

TEST(ApplyPatchTest, TakesAMoveOnlyFromTheLineBelowTheHeadOfAFile) {
  const auto [files, has_odd_blanks] = FilesInPatch(
      "*** Begin Patch\n"
      "*** Update File: a\n"
      "*** Move to: /etc/passwd\n"
      "@@\n"
      " *** Move to: b\n"
      "-c\n"
      "*** End Patch");
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "a");
  EXPECT_EQ(files[0].what, FileUse::What::kMove);
  EXPECT_EQ(files[0].new_path, "/etc/passwd");
  EXPECT_EQ(files[1].path, "b");
  EXPECT_EQ(files[1].what, FileUse::What::kWrite);
  EXPECT_EQ(FilesInPatch("*** Move to: x").files.size(), 1U);
}

TEST(ApplyPatchTest, FindsAFileOfAPatchBelowAnyWhiteSpace) {
  for (const std::string blank :
       {"\v", "\f", "\u00A0", "\u2003", "\u3000", "\uFEFF", " \u0085\t"}) {
    for (const std::string& line :
         {blank + "*** Delete File: a", "*** Delete File: a" + blank}) {
      const PatchReading reading = FilesInPatch("*** Add File: b\n" + line);
      ASSERT_EQ(reading.files.size(), 2U) << line;
      EXPECT_EQ(reading.files[1].path, "a") << line;
      EXPECT_TRUE(reading.has_odd_blanks) << line;
    }
  }
  // A line of content is no trouble.
  EXPECT_FALSE(FilesInPatch("*** Add File: b\n+\u00A0\n").has_odd_blanks);
}

TEST(HookInstallTest, AddsItsEntriesOnceAndTakesBackExactlyThese) {
  for (const HookHost& host : HookHosts()) {
    const auto fresh = WithHook(host, std::nullopt);
    ASSERT_TRUE(fresh) << host.name;
    const auto again = WithHook(host, *fresh);
    ASSERT_TRUE(again) << host.name;
    EXPECT_EQ(*again, *fresh) << host.name;
    const auto found = ReadInstalled(host, HookScope::kUser, **fresh);
    ASSERT_TRUE(found) << host.name;
    EXPECT_EQ(found->fault, "") << host.name;
    const auto gone = WithoutHook(host, *fresh);
    ASSERT_TRUE(gone) << host.name;
    EXPECT_FALSE(gone->has_value()) << host.name << ": " << **gone;
  }
}

TEST(HookInstallTest, KeepsOrderAndUnknownMembers) {
  const std::string settings =
      "{\n"
      "    \"z\": 1.5,\n"
      "    \"hooks\": {\n"
      "        \"Stop\": [],\n"
      "        \"PreToolUse\": [\n"
      "            {\n"
      "                \"matcher\": \"Bash\",\n"
      "                \"hooks\": [\n"
      "                    {\n"
      "                        \"type\": \"command\",\n"
      "                        \"command\": \"other\"\n"
      "                    }\n"
      "                ]\n"
      "            }\n"
      "        ]\n"
      "    },\n"
      "    \"a\": \"\xC3\xA9\"\n"
      "}\n";
  const HookHost& host = *FindHookHost("claude-code");
  const auto with = WithHook(host, settings);
  ASSERT_TRUE(with);
  EXPECT_TRUE((*with)->starts_with("{\n    \"z\": 1.5,\n    \"hooks\": {\n"));
  EXPECT_LT((*with)->find("\"other\""), (*with)->find("\"claude-code\""));
  const auto without = WithoutHook(host, *with);
  ASSERT_TRUE(without && *without);
  EXPECT_EQ(**without, settings);
}

TEST(HookInstallTest, ReplacesAnEntryOfAnotherVersion) {
  const HookHost& host = *FindHookHost("codex");
  const auto with =
      WithHook(host,
               R"({"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[
          {"type":"command","command":"/usr/bin/txfs hook codex"},
          {"type":"command","command":"x"}]}]}})");
  ASSERT_TRUE(with);
  EXPECT_FALSE((*with)->contains("/usr/bin/txfs"));
  EXPECT_TRUE((*with)->contains("\"x\""));
  // That of another host is not its own.
  const std::string gemini =
      R"({"hooks":{"PreToolUse":[{"hooks":[{"command":"txfs hook gemini"}]}]}})";
  const auto without = WithoutHook(host, gemini);
  ASSERT_TRUE(without && *without);
  EXPECT_EQ(**without, gemini);
}

TEST(HookInstallTest, FindsWhyAHostDoesNotCallTheHook) {
  struct Case {
    const char* host;
    std::string text, fault;
  };
  const auto changed = [](const char* host, const std::string& what,
                          const std::string& by) {
    const auto text = WithHook(*FindHookHost(host), std::nullopt);
    const std::string after = Replaced(**text, what, by);
    EXPECT_NE(after, **text) << what;
    return after;
  };
  const std::string claude = "Bash|Edit|MultiEdit|Write|NotebookEdit";
  for (const Case& c : {
           Case{"claude-code", changed("claude-code", claude, "Nope"),
                "leaves out the tool Bash"},
           Case{"claude-code", changed("claude-code", claude, "Bash, Edit"),
                "leaves out the tool MultiEdit"},
           Case{"claude-code", changed("claude-code", claude, ".*"), ""},
           Case{"claude-code", changed("claude-code", claude, "*"), ""},
           Case{"claude-code", changed("claude-code", claude, "(B"),
                "leaves out the tool Bash"},
           Case{"claude-code",
                changed("claude-code", "\"PreToolUse\"", "\"Stop\""),
                "has no entry of the hook for PreToolUse"},
           Case{"claude-code", changed("claude-code", "\"command\",", "\"x\","),
                "without \"type\""},
           Case{"claude-code",
                changed("claude-code", "{\n  \"hooks\"",
                        "{\"disableAllHooks\": true, \"hooks\""),
                "disableAllHooks"},
           Case{"claude-code", "// x\n" + changed("claude-code", "\n", "\n "),
                "without comments"},
           Case{"gemini", "// x\n" + changed("gemini", "\n", " \n"),
                "without comments"},
           Case{"gemini",
                changed("gemini", "{\n  \"hooks\"",
                        "{\"hooksConfig\": {\"disabled\": [\"txfs\"]}, "
                        "\"hooks\""),
                "hooksConfig.disabled"},
           Case{"gemini", changed("gemini", "write_file|", ""),
                "leaves out the tool write_file"},
           Case{"cursor",
                changed("cursor", "\"failClosed\"",
                        "\"matcher\": \"curl\", \"failClosed\""),
                "has a matcher for beforeShellExecution"},
           Case{"opencode", changed("opencode", "throw", "return"),
                "is not the plugin"},
       }) {
    const auto found =
        ReadInstalled(*FindHookHost(c.host), HookScope::kProject, c.text);
    if (!found) {
      EXPECT_EQ(c.fault, "") << c.text;
      continue;
    }
    EXPECT_TRUE(found->fault.contains(c.fault)) << c.fault << found->fault;
    EXPECT_EQ(found->fault.empty(), c.fault.empty()) << found->fault;
    EXPECT_FALSE(found->remedy.empty());
  }
}

TEST(HookInstallTest, RefusesWhatItDoesNotUnderstand) {
  const HookHost& gemini = *FindHookHost("gemini");
  for (const char* text :
       {"", "// a\n{}", "[]", "{\"a\":1,\"a\":2}", "{\"hooks\":[]}",
        "{\"hooks\":{\"BeforeTool\":{}}}"}) {
    EXPECT_FALSE(WithHook(gemini, text)) << text;
  }
  const HookHost& opencode = *FindHookHost("opencode");
  EXPECT_FALSE(WithHook(opencode, "export const Mine = 1\n"));
  EXPECT_FALSE(WithoutHook(opencode, "export const Mine = 1\n"));
}

}  // namespace
}  // namespace txfs::cli
