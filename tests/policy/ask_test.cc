#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/lint.h"
#include "policy/load.h"
#include "policy/policy.h"
#include "policy/sources.h"
#include "policy/words.h"

namespace txfs::policy {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::string RuleText(const std::string& id, const std::string& action) {
  return "[[fs]]\nid = \"" + id + "\"\npath = \"a\"\naction = \"" + action +
         "\"\nreason = \"r\"\nsuggest = \"s\"\nmatch = [\"unlink a\"]\n";
}

Result<std::shared_ptr<const Policy>> CompileAll(
    const std::vector<std::string>& texts) {
  std::vector<SourceText> sources;
  for (const std::string& text : texts) {
    sources.push_back(
        {std::to_string(sources.size()) + ".toml", "schema = 1\n" + text});
  }
  return Compile(sources);
}

std::string ErrorOf(const std::vector<std::string>& texts) {
  const auto policy = CompileAll(texts);
  return policy ? "" : policy.error().message;
}

TEST(AskTest, StandsBetweenAuditAndDeny) {
  const Event event{.op = Op::kUnlink, .effect = Effect::kRemove, .path = "a"};
  auto policy =
      CompileAll({RuleText("noted", "audit") + RuleText("asked", "ask")});
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_EQ(Evaluate(**policy, event).rule->id, "asked");
  policy = CompileAll({RuleText("denied", "deny") + RuleText("asked", "ask")});
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_EQ(Evaluate(**policy, event).rule->id, "denied");
  EXPECT_EQ(NameOf(Action::kAsk), "ask");
}

TEST(AskTest, OfSeveralTimesTheShortestHolds) {
  const auto timeout_of = [](const std::vector<std::string>& texts) {
    const auto policy = CompileAll(texts);
    EXPECT_TRUE(policy) << policy.error().ToString();
    return policy ? (*policy)->settings().ask_timeout : std::nullopt;
  };
  EXPECT_EQ(timeout_of({""}), std::nullopt);
  EXPECT_EQ(timeout_of({"[ask]\ntimeout = 2"}), milliseconds(2000));
  EXPECT_EQ(timeout_of({"[ask]\ntimeout = 0.5", "[ask]\ntimeout = 600", ""}),
            milliseconds(500));
}

TEST(AskTest, SaysWhatIsNoTime) {
  for (const char* wrong :
       {"\"5m\"", "0", "-1", "nan", "inf", "3601", "true", "[1]"}) {
    EXPECT_THAT(ErrorOf({std::string("[ask]\ntimeout = ") + wrong}),
                HasSubstr("0.toml:3: timeout of [ask] is not a valid time"))
        << wrong;
  }
  EXPECT_THAT(ErrorOf({"[ask]\ntime = 1"}), HasSubstr("unknown key \"time\""));
  EXPECT_THAT(ErrorOf({"ask = 1"}),
              HasSubstr("ask of the file is not a table"));
}

TEST(AskTest, NoneThatAsksIsShadowedByAnother) {
  const auto policy =
      CompileAll({RuleText("asked", "ask") + RuleText("asked-too", "ask")});
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_TRUE(Lint((*policy)->rules()).empty());
  const auto denies =
      CompileAll({RuleText("asked", "ask") + RuleText("denied", "deny")});
  ASSERT_TRUE(denies) << denies.error().ToString();
  ASSERT_EQ(Lint((*denies)->rules()).size(), 1U);
  EXPECT_THAT(Lint((*denies)->rules())[0].message,
              HasSubstr("asked never decides"));
}

TEST(AskTest, IsToldInWords) {
  const auto policy = CompileAll({RuleText("asked", "ask")});
  ASSERT_TRUE(policy) << policy.error().ToString();
  const std::string words = InWords((*policy)->rules(), (*policy)->limits());
  EXPECT_THAT(words, HasSubstr("## asked"));
  EXPECT_THAT(words,
              HasSubstr("The operation waits until a user approves it."));
}

constexpr const char* kHook =
    "[hook]\ncommand = [\"/bin/hook\", \"x\"]\ntimeout = 0.5\n";

TEST(HookTest, StandsBetweenAuditAndAsk) {
  const Event event{.op = Op::kUnlink, .effect = Effect::kRemove, .path = "a"};
  const auto policy =
      CompileAll({RuleText("hooked", "hook") + RuleText("noted", "audit"),
                  kHook, RuleText("asked", "ask")});
  ASSERT_TRUE(policy) << policy.error().ToString();
  EXPECT_EQ(Evaluate(**policy, event).rule->id, "asked");
  const auto& hook = (*policy)->settings().hook;
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->command, (std::vector<std::string>{"/bin/hook", "x"}));
  EXPECT_EQ(hook->timeout, milliseconds(500));
  EXPECT_THAT(InWords((*policy)->rules(), (*policy)->limits()),
              HasSubstr("A program decides about the operation."));
}

TEST(HookTest, SaysWhatIsWrong) {
  EXPECT_THAT(ErrorOf({RuleText("hooked", "hook")}),
              HasSubstr("0.toml:2: action of hooked is \"hook\", but no file "
                        "has a [hook]"));
  EXPECT_THAT(ErrorOf({kHook, kHook}),
              HasSubstr("1.toml:2: [hook] is already set in 0.toml:2"));
  EXPECT_THAT(ErrorOf({"[hook]\ncommand = \"hook\""}),
              HasSubstr("command of [hook] does not name a program"));
  EXPECT_THAT(ErrorOf({"[hook]\n"}), HasSubstr("does not name a program"));
  EXPECT_THAT(ErrorOf({std::string(kHook) + "on_error = \"allow\""}),
              HasSubstr("on_error of [hook] is \"allow\"; expected deny"));
}

}  // namespace
}  // namespace txfs::policy
