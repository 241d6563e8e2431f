#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cli/daemon/control_server.h"
#include "cli/daemon/live_policy.h"
#include "cli/protocol/client.h"
#include "cli/protocol/judgement.h"
#include "cli/protocol/wire.h"
#include "fake_workspace.h"
#include "journal/support/file.h"
#include "shell_cases.h"
#include "temp_tree.h"

namespace txfs::cli {
namespace {

constexpr const char* kJudgingRules = R"(
schema = 1

[[fs]]
id = "kept"
path = "kept"
ops = ["remove"]
layer = "base"
reason = "it is to stay"
suggest = "leave it"

[[exec]]
id = "no-rm"
program = "rm"
action = "ask"
class = "confined"
reason = "it removes"
suggest = "move it"

[[exec]]
id = "no-outside"
program = "cp"
place = "outside"
operand = "last"
unless = { place = "temp" }
class = "confined"
reason = "it leaves"
suggest = "copy it here"

[[exec]]
id = "no-push"
program = "git"
subcommand = "push"
reason = "it leaves"
suggest = "ask"
)";

/// Requests that a daemon answers by its rules, and those about calls.
class JudgeControlTest : public testing::Test {
 protected:
  void SetUp() override {
    UniqueFd dir(::open(tree_.path().c_str(), O_RDONLY | O_DIRECTORY));
    auto store = Store::Open(std::move(dir), tree_.path(), "/w");
    ASSERT_TRUE(store) << store.error().ToString();
    workspace_ = std::make_unique<FakeWorkspace>(std::move(*store));
    workspace_->base_directory = base_.path();
    dispatcher_ = std::make_unique<Dispatcher>(
        *workspace_, Host{.pid = 77, .mountpoint = "/m", .tell_siblings = {}});
    approvals_ = std::make_unique<Approvals>("/m", "/w", [] { return ""; });
    policy_ = std::make_unique<LivePolicy>(
        *workspace_, *approvals_, Reach{.workspace = "/w", .mountpoint = "/m"},
        PolicySetup{.sources = {},
                    .texts = {{.file = "rules.toml", .text = kJudgingRules}}});
    auto server = ControlServer::Listen(
        {sockets_.path() + "/socket"}, {},
        [this](const Json& request, const FrameSink& sink, pid_t) {
          return LivePolicy::IsAsked(request)
                     ? policy_->Handle(request, sink)
                     : dispatcher_->Handle(request, sink);
        },
        [] {});
    ASSERT_TRUE(server) << server.error().ToString();
    server_ = std::move(*server);
  }

  std::unique_ptr<Connection> Connect() {
    auto connection = SocketConnection::Open(sockets_.path() + "/socket");
    EXPECT_TRUE(connection) << connection.error().ToString();
    return connection ? *std::move(connection) : nullptr;
  }
  Client ConnectClient() { return Client(Connect()); }

  /// "ACTION RULE" or an error.
  std::string Judged(const Json& request) {
    Client client = ConnectClient();
    const auto verdict = client.Judge(request);
    // Whatever it was asked, it answers the next request.
    EXPECT_TRUE(client.GetStatus()) << request.dump();
    if (!verdict) return verdict.error().message;
    return std::string(NameOf(verdict->action)) + " " + verdict->rule;
  }
  /// The same, of a program with its arguments.
  std::string JudgedWords(
      const std::vector<std::string>& words,
      policy::Confinement confinement = policy::Confinement::kNone) {
    return Judged(JudgeRequest(ReadCommandWords(words, ExampleStart()),
                               policy::ExampleSurroundings(), confinement));
  }

  TempTree tree_, sockets_, base_{{{"kept", {.content = "kept"}}}};
  std::unique_ptr<FakeWorkspace> workspace_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<Approvals> approvals_;
  std::unique_ptr<LivePolicy> policy_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(JudgeControlTest, JudgesACommandByItsRules) {
  using policy::Confinement;
  EXPECT_EQ(JudgedWords({"ls"}), "allow ");
  EXPECT_EQ(JudgedWords({"sudo", "git", "push"}), "deny no-push");
  EXPECT_EQ(JudgedWords({"rm", "x"}), "ask no-rm");
  EXPECT_EQ(JudgedWords({"rm", "x"}, Confinement::kRun), "allow no-rm");
  EXPECT_EQ(JudgedWords({"git", "push"}, Confinement::kRun), "deny no-push");
  EXPECT_EQ(JudgedWords({"cp", "a", "/srv/x"}), "deny no-outside");
  EXPECT_EQ(JudgedWords({"cp", "/srv/x", "a"}), "allow ");
  EXPECT_EQ(JudgedWords({"cp", "a", "/tmp"}), "allow ");
  const auto verdict = ConnectClient().Judge(
      JudgeRequest(ReadCommandWords({"git", "push"}, ExampleStart()),
                   policy::ExampleSurroundings(), policy::Confinement::kNone));
  ASSERT_TRUE(verdict) << verdict.error().ToString();
  EXPECT_EQ(verdict->reason, "it leaves");
  EXPECT_EQ(verdict->suggest, "ask");
  EXPECT_EQ(verdict->consequence, policy::Class::kIrreversible);
}

/// The daemon and the caller come to the same verdict, whatever the part has.
TEST_F(JudgeControlTest, LosesNothingOfACommand) {
  const auto rules = policy::Compile(std::vector<policy::SourceText>{
      {.file = "rules.toml", .text = kJudgingRules}});
  ASSERT_TRUE(rules) << rules.error().ToString();
  for (const char* text :
       {"docker run --rm image rm -rf x", "ssh host rm x", "curl x | sh",
        "A=b git push", "cd /srv && cp a b", "rm \"$X\"", "cp a \"$X/b\"",
        "cat x | xargs rm", "sudo -n rm x",
        R"(python3 -c 'import os; os.system("rm x")')", "$PROGRAM x",
        "cp a /srv/x; cp a b > /etc/x"}) {
    const ShellReading reading = ReadShellText(text, ExampleStart());
    for (const auto confinement :
         {policy::Confinement::kNone, policy::Confinement::kMount,
          policy::Confinement::kRun}) {
      const CommandVerdict verdict =
          Judge(**rules, reading, policy::ExampleSurroundings(), confinement);
      const RuleVerdict here = Summarize(verdict);
      const Json request =
          JudgeRequest(reading, policy::ExampleSurroundings(), confinement);
      const auto there = ConnectClient().Judge(request);
      ASSERT_TRUE(there) << text << ": " << there.error().ToString();
      EXPECT_EQ(there->action, here.action) << text;
      EXPECT_EQ(there->consequence, here.consequence) << text;
      EXPECT_EQ(there->rule, here.rule) << text;
      EXPECT_EQ(there->reads_only, here.reads_only) << text;
      for (const auto form : {ExplainForm::kText, ExplainForm::kJson}) {
        const auto explained =
            ConnectClient().Explain(ExplainRequest(request, form));
        ASSERT_TRUE(explained) << explained.error().ToString();
        EXPECT_EQ(*explained, FormatVerdict(verdict, form)) << text;
      }
    }
  }
}

TEST_F(JudgeControlTest, JudgesAnOperationByWhatTheBaseHas) {
  const auto judged = [&](policy::Op op, const std::string& path,
                          const std::string& new_path = "") {
    policy::Proposal proposal;
    proposal.op = op;
    proposal.path = path;
    proposal.new_path = new_path;
    return Judged(JudgeRequest(proposal));
  };
  EXPECT_EQ(judged(policy::Op::kUnlink, "kept"), "deny kept");
  EXPECT_EQ(judged(policy::Op::kWrite, "kept"), "allow ");
  EXPECT_EQ(judged(policy::Op::kUnlink, "new/kept"), "allow ");
  EXPECT_EQ(judged(policy::Op::kRename, "kept", "x"), "deny kept");
  // Nothing outside of the workspace is looked at.
  const std::string name(policy::BaseName(base_.path()));
  EXPECT_EQ(judged(policy::Op::kUnlink, "../" + name + "/kept"), "allow ");
  EXPECT_EQ(judged(policy::Op::kUnlink, base_.path() + "/kept"), "allow ");
  EXPECT_EQ(judged(policy::Op::kUnlink, ""), "allow ");
  EXPECT_EQ(judged(policy::Op::kUnlink, std::string(100'000, 'a')), "allow ");
  EXPECT_EQ(judged(policy::Op::kUnlink, std::string("k\0\xFF\n", 4)), "allow ");
}

TEST_F(JudgeControlTest, RefusesToJudgeNothing) {
  constexpr const char* kNothing =
      "the request has no command and no operation";
  EXPECT_EQ(Judged({{"request", "judge"}}), kNothing);
  EXPECT_EQ(Judged({{"request", "judge"}, {"op", "no such"}, {"path", "x"}}),
            kNothing);
  EXPECT_EQ(Judged({{"request", "judge"}, {"op", 7}, {"path", "x"}}), kNothing);
  EXPECT_EQ(Judged({{"request", "judge"}, {"path", "kept"}}), kNothing);
  // Without a path it is about the root.
  EXPECT_EQ(Judged({{"request", "judge"}, {"op", "unlink"}}), "allow ");
  EXPECT_EQ(Judged({{"request", "judge"}, {"op", "unlink"}, {"path", {1}}}),
            "allow ");
}

TEST_F(JudgeControlTest, JudgesWhatThereIsOfABrokenCommand) {
  const auto judged = [&](const std::string& parts) {
    return Judged(
        Json::parse(R"({"request": "judge", "parts": )" + parts + "}"));
  };
  for (
      const char* parts :
      {"[]", "{}", "7", "\"text\"", "null", "[7]", "[\"text\"]", "[null]",
       "[{}]", "[[]]", R"([{"program": "git", "arguments": ["push"]}])",
       R"([{"program": {"text": "git", "known": true}, "arguments": "push"}])"}) {
    EXPECT_EQ(judged(parts), "allow ") << parts;
  }
  EXPECT_EQ(judged(R"([{"program": {"text": "git", "known": true},
                        "arguments": [{"text": "push", "known": true}]}])"),
            "deny no-push");
  // Beside it may be anything.
  EXPECT_EQ(
      judged(R"([7, {"program": {"text": "git", "known": true, "prefix": "x"},
                           "arguments": [{"text": "push", "known": true}],
                           "paths": "x", "reads": [1, null],
                           "environment": 7, "fed_by": [{"x": 1}],
                           "script": "no such", "remote": "yes"}])"),
      "deny no-push");
}

TEST_F(JudgeControlTest, TrustsNoNumberOfAnArgument) {
  // Of two arguments, the numbers 0 and 1.
  for (const char* number : {"0", "1", "2", "3", "1099511627776",
                             "18446744073709551615", "-1", "null", "0.5"}) {
    const std::string path = std::string(R"([{"path": "/srv/x", "place":
        "outside", "argument": )") +
                             number + "}]";
    const std::string prefix = std::string(R"("prefix": )") + number;
    EXPECT_EQ(
        Judged(Json::parse(
            R"({"request": "judge", "parts": [{"program": {"text": "cp", "known": true, )" +
            prefix + R"(}, "arguments": [{"text": "a", )" + prefix +
            R"(}, {"text": "/srv/x"}], "paths": )" + path + R"(, "reads": )" +
            path + "}]}")),
        "deny no-outside")
        << number;
  }
}

TEST_F(JudgeControlTest, ALongCommandIsJudgedOrTheConnectionEnds) {
  // More parts than there may be: the rest is not looked at.
  Json parts = Json::array();
  const auto add = [&](const char* program) {
    parts.push_back(Json::object());
    parts.back()["program"]["text"] = program;
  };
  for (size_t i = 0; i < kMaxShellParts; ++i) add("true");
  add("rm");
  EXPECT_EQ(Judged({{"request", "judge"}, {"parts", parts}}), "allow ");

  EXPECT_FALSE(ConnectClient().Judge(
      {{"request", "judge"},
       {"parts", Json::array()},
       {"unknown", Json::array({std::string(kRequestMax, 'x')})}}));
  EXPECT_TRUE(ConnectClient().GetStatus());
}

TEST_F(JudgeControlTest, ListsCallsWithWhateverIsInThem) {
  workspace_->calls = {{.number = 7,
                        .mark = {.host = "h\xFF",
                                 .call = "c\n",
                                 .command = std::string(9, '\0')},
                        .begin = Lsn{3},
                        .end = Lsn{9},
                        .began = {.sec = -5, .nsec = 7},
                        .gone = true,
                        .operations = ~0ULL,
                        .changes = 2,
                        .overlaps = {8, ~0ULL}},
                       {.number = 8, .mark = {.end = true}}};
  Client client = ConnectClient();
  const auto calls = client.Calls();
  ASSERT_TRUE(calls) << calls.error().ToString();
  EXPECT_EQ(*calls, workspace_->calls);
  // In as many frames as it takes.
  workspace_->calls.assign(5000, workspace_->calls.front());
  EXPECT_EQ(client.Calls()->size(), 5000U);
  workspace_->calls.clear();
  EXPECT_TRUE(client.Calls()->empty());
}

TEST_F(JudgeControlTest, CutsALongMarkAndTakesABrokenOne) {
  Client client = ConnectClient();
  const std::string text(1 << 20, 'x');
  EXPECT_EQ(client.MarkCall({.host = text, .call = text, .command = text})
                .value_or(0),
            7U);
  EXPECT_EQ(workspace_->marked.host.size(), kMaxCallId);
  EXPECT_EQ(workspace_->marked.command.size(), kMaxCallCommand);
  const auto connection = Connect();
  for (const char* mark :
       {"null", "7", "\"text\"", "[]", R"({"host": 7, "end": "yes"})"}) {
    const auto reply = connection->Call(
        {{"request", "call_mark"}, {"mark", Json::parse(mark)}});
    ASSERT_TRUE(reply) << mark;
    EXPECT_EQ(workspace_->marked, CallMark{}) << mark;
  }
  EXPECT_TRUE(connection->Call({{"request", "call_mark"}}));
}

TEST_F(JudgeControlTest, AsksForACallByWhateverId) {
  const auto bounds = ConnectClient().FindCallBounds("x\xFF");
  ASSERT_TRUE(bounds) << bounds.error().ToString();
  EXPECT_EQ(bounds->since, "since x\xFF");
  EXPECT_EQ(bounds->until, "until\xFF");
  const auto connection = Connect();
  for (const char* request :
       {R"({"request": "call"})", R"({"request": "call", "id": 7})",
        R"({"request": "call", "id": null})", R"({"request": "revert"})",
        R"({"request": "revert", "id": []})",
        R"({"request": "calls", "id": "x"})"}) {
    EXPECT_TRUE(connection->Call(Json::parse(request))) << request;
  }
  EXPECT_TRUE(ConnectClient().FindCallBounds(std::string(1 << 20, 'x')));
}

}  // namespace
}  // namespace txfs::cli
