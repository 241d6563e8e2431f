#include <fcntl.h>

#include "cli/commands.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/text.h"
#include "policy/sources.h"

namespace txfs::cli {
namespace {

using policy::Rule;

/// The one that is in the transaction: a path as it is asked for may begin with
/// a slash or "./".
std::string PlainPath(std::string path) {
  while (path.starts_with("./")) path.erase(0, 2);
  while (path.starts_with('/')) path.erase(0, 1);
  while (path.ends_with('/')) path.pop_back();
  return path;
}

Document RuleDocument(const Rule& rule) {
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  document["file"] = rule.place.file;
  document["line"] = rule.place.line;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string RuleText(const Rule& rule, bool decides) {
  std::string text = decides ? "* " : "  ";
  text += std::string(policy::NameOf(rule.action)) + " " + rule.id + " (" +
          rule.place.ToString() + "): " + EscapeControls(rule.reason) + "\n";
  return text;
}

/// The rules of one file.
Result<std::shared_ptr<const policy::Policy>> LoadFile(
    const Context& context, const std::string& file) {
  const policy::Sources sources{
      .files = {{.path = ResolvePath(context.directory, file)}}};
  return policy::LoadSources(sources, AT_FDCWD);
}

/// The context of a command that was given a directory.
Context In(const Context& context,
           const std::optional<std::string>& directory) {
  Context inside = context;
  if (directory) {
    inside.directory = ResolvePath(context.directory, *directory);
  }
  return inside;
}

}  // namespace

Result<int> RunPolicyCheck(const Context& context, const std::string& file) {
  const auto policy = TRY(LoadFile(context, file));
  Output output;
  output.Write(file + ": " + Count(policy->rules().size(), "rule") +
               ", and their examples hold\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunPolicyReload(const Context& context,
                            const std::optional<std::string>& directory) {
  const Place place = TRY(Locate(In(context, directory)));
  if (place.daemon != DaemonState::kRunning) {
    return Fail(0, "the transaction of " + place.workspace + " is not mounted",
                "`txfs mount` reads the rules when it mounts");
  }
  Client client = TRY(Connect(place));
  const auto texts = TRY(client.ReloadPolicy());
  const auto policy = TRY(policy::Compile(texts));
  Output output;
  output.Write(Count(policy == nullptr ? 0 : policy->rules().size(), "rule") +
               " in force at " + EscapeControls(place.address.mountpoint) +
               "\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunPolicyExplain(const Context& context,
                             const PolicyExplainArguments& arguments) {
  const auto op = policy::OpNamed(arguments.op);
  if (!op) {
    return Fail(ErrorKind::kUsage, 0, "no operation is called " + arguments.op,
                "`txfs log` shows what they are called");
  }
  const auto policy = TRY(LoadFile(context, arguments.file));
  const std::string path = PlainPath(arguments.path);
  const policy::Event event{
      .op = *op,
      .effect = policy::MainEffect(*op),
      .path = path,
      .layer = arguments.is_new ? policy::Layer::kNew : policy::Layer::kBase,
      .exe = arguments.exe};
  const policy::Verdict verdict = policy::Evaluate(*policy, event);
  Output output;
  if (arguments.json) {
    Document document;
    document["verdict"] = policy::NameOf(verdict.action);
    document["decided_by"] =
        verdict.rule == nullptr ? Document() : Document(verdict.rule->id);
    document["rules"] = Document::array();
    for (const Rule* rule : policy->Matching(event)) {
      document["rules"].push_back(RuleDocument(*rule));
    }
    output.Write(Dump(document, 2) + "\n");
  } else {
    output.Write(std::string(policy::NameOf(verdict.action)) + "\n");
    for (const Rule* rule : policy->Matching(event)) {
      output.Write(RuleText(*rule, rule == verdict.rule));
    }
    if (verdict.rule != nullptr) {
      output.Write("instead: " + EscapeControls(verdict.rule->suggest) + "\n");
    }
  }
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
