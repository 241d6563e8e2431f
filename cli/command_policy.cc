#include "cli/commands.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/paths.h"
#include "cli/policy_rules.h"
#include "cli/text.h"
#include "policy/lint.h"

namespace txfs::cli {
namespace {

using policy::Rule;

/// The context of a command that was given a directory.
Context In(const Context& context,
           const std::optional<std::string>& directory) {
  Context inside = context;
  if (directory) {
    inside.directory = ResolvePath(context.directory, *directory);
  }
  return inside;
}

std::string_view LayerName(const Rule& rule) {
  if (!rule.when.layer) return "any";
  return *rule.when.layer == policy::Layer::kBase ? "base" : "new";
}

/// Without its exceptions: nobody is to be told of a way around it.
Document RuleDocument(const Rule& rule) {
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  document["errno"] = ErrnoName(rule.error);
  PutPath(document, "file", rule.place.file);
  document["line"] = rule.place.line;
  document["ops"] = policy::NamesOf(rule.ops);
  document["paths"] = rule.when.patterns;
  document["layer"] = LayerName(rule);
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string RuleText(const Rule& rule) {
  std::string text = std::string(policy::NameOf(rule.action)) + " " + rule.id +
                     " (" + EscapeControls(rule.place.ToString()) +
                     "): " + EscapeControls(rule.reason) + "\n";
  text += "  ops    " + Join(policy::NamesOf(rule.ops)) + "\n";
  text += "  paths  " + EscapeControls(Join(rule.when.patterns)) + "\n";
  if (rule.when.layer)
    text += "  layer  " + std::string(LayerName(rule)) + "\n";
  return text;
}

Status Print(const std::string& text) {
  Output output;
  output.Write(text);
  return output.Finish();
}

}  // namespace

Result<int> RunPolicyCheck(const Context& context, const std::string& file) {
  const Rules rules = TRY(RulesOfFile(context, file));
  TRY(Print(EscapeControls(file) + ": " + Count(rules->rules().size(), "rule") +
            ", and their examples hold\n"));
  return 0;
}

Result<int> RunPolicyLint(const Context& context, const std::string& file) {
  const Rules rules = TRY(RulesOfFile(context, file));
  const auto warnings = policy::Lint(rules->rules());
  std::string text;
  for (const policy::Warning& warning : warnings) {
    text += EscapeControls(warning.place.ToString() + ": " + warning.message) +
            "\n";
  }
  TRY(Print(text));
  return warnings.empty() ? 0 : 1;
}

Result<int> RunPolicyShow(const Context& context,
                          const std::optional<std::string>& directory,
                          bool json) {
  const Rules rules = TRY(RulesInForce(In(context, directory)));
  std::string text;
  Document documents = Document::array();
  for (const Rule& rule : rules->rules()) {
    documents.push_back(RuleDocument(rule));
    text += RuleText(rule);
  }
  TRY(Print(json ? Dump(documents, 2) + "\n" : text));
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
  const Rules rules = TRY(policy::Compile(texts));
  TRY(Print(Count(rules == nullptr ? 0 : rules->rules().size(), "rule") +
            " in force at " + EscapeControls(place.address.mountpoint) + "\n"));
  return 0;
}

}  // namespace txfs::cli
