#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/limit_text.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/rules/policy_rules.h"
#include "policy/lint.h"

namespace txfs::cli {
namespace {

using policy::Limit;
using policy::Rule;

/// The context of a command that was given a directory.
Result<Context> In(const Context& context,
                   const std::optional<std::string>& directory) {
  Context inside = context;
  if (directory) {
    TRY(CheckWay(context.directory, *directory));
    inside.directory = ResolvePath(context.directory, *directory);
  }
  return inside;
}

std::string_view LayerName(const Rule& rule) {
  if (!rule.when.layer) return "any";
  return NameOf(*rule.when.layer);
}

std::vector<std::string_view> TypeNames(const Rule& rule) {
  std::vector<std::string_view> names;
  for (const policy::Type type : rule.when.types) {
    names.push_back(policy::NameOf(type));
  }
  return names;
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
  document["nocase"] = rule.nocase;
  document["layer"] = LayerName(rule);
  document["types"] = TypeNames(rule);
  document["with_directory"] = rule.with_directory;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string RuleText(const Rule& rule) {
  std::string text = std::string(policy::NameOf(rule.action)) + " " + rule.id +
                     " (" + EscapeControls(rule.place.ToString()) +
                     "): " + EscapeControls(rule.reason) + "\n";
  text += "  ops    " + Join(policy::NamesOf(rule.ops)) + "\n";
  text += "  paths  " + EscapeControls(Join(rule.when.patterns)) +
          (rule.nocase ? " (nocase)" : "") + "\n";
  if (rule.when.layer)
    text += "  layer  " + std::string(LayerName(rule)) + "\n";
  if (!rule.when.types.empty())
    text += "  types  " + Join(TypeNames(rule)) + "\n";
  return text;
}

std::string LimitText(const Limit& limit) {
  std::string text = std::string(policy::NameOf(limit.action)) + " " +
                     limit.id + " (" + EscapeControls(limit.place.ToString()) +
                     "): " + EscapeControls(limit.reason) + "\n";
  text += "  limit  " + std::string(policy::NameOf(limit.of)) + ": " +
          policy::AllowanceOf(limit) + "\n";
  if (!limit.patterns.empty()) {
    text += "  paths  " + EscapeControls(Join(limit.patterns)) + "\n";
  }
  return text + "  at     " + MomentText(limit) + "\n";
}

/// Without its exceptions, as that of a rule about operations.
Document ExecRuleDocument(const policy::ExecRule& rule) {
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  document["class"] = policy::NameOf(rule.consequence);
  PutPath(document, "file", rule.place.file);
  document["line"] = rule.place.line;
  Document programs = Document::array();
  for (const policy::TextPattern& program : rule.when.programs) {
    programs.push_back(program.text());
  }
  document["programs"] = std::move(programs);
  document["read_only"] = rule.reads_only;
  document["unlisted"] = rule.unlisted;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string ExecRuleText(const policy::ExecRule& rule) {
  std::string text = std::string(policy::NameOf(rule.action)) + " " + rule.id +
                     " (" + EscapeControls(rule.place.ToString()) +
                     "): " + EscapeControls(rule.reason) + "\n";
  text += "  class  " + std::string(policy::NameOf(rule.consequence)) + "\n";
  if (!rule.when.programs.empty()) {
    text += "  programs  " +
            EscapeControls(Join(rule.when.programs,
                                [](const policy::TextPattern& program) {
                                  return program.text();
                                })) +
            "\n";
  }
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
  TRY(Print(EscapeControls(file) + ": " + CountRules(rules.get()) +
            ", and their examples hold\n"));
  const auto together = RulesOfFile(context, file, WithBuiltin::kYes);
  if (!together) {
    Say("note: it cannot be combined with the default policy: " +
        together.error().ToString());
  }
  return 0;
}

Result<int> RunPolicyLint(const Context& context,
                          const std::optional<std::string>& file) {
  const Rules rules = TRY(RulesFor(context, file));
  const auto warnings =
      policy::Lint(rules->rules(), rules->limits(), rules->exec_rules());
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
  const Context inside = TRY(In(context, directory));
  const Rules rules = TRY(RulesInForce(inside));
  std::string text;
  Document documents = Document::array();
  for (const Rule& rule : rules->rules()) {
    documents.push_back(RuleDocument(rule));
    text += RuleText(rule);
  }
  for (const Limit& limit : rules->limits()) {
    documents.push_back(LimitDocument(limit));
    text += LimitText(limit);
  }
  for (const policy::ExecRule& rule : rules->exec_rules()) {
    documents.push_back(ExecRuleDocument(rule));
    text += ExecRuleText(rule);
  }
  TRY(Print(json ? Dump(documents, 2) + "\n" : text));
  return 0;
}

Result<int> RunPolicyReload(const Context& context,
                            const std::optional<std::string>& directory) {
  const Context inside = TRY(In(context, directory));
  const Place place = TRY(Locate(inside));
  if (place.daemon != DaemonState::kRunning) {
    return Fail(0, "the transaction of " + place.workspace + " is not mounted",
                "`txfs mount` reads the rules when it mounts");
  }
  Client client = TRY(Connect(place));
  const auto texts = TRY(client.ReloadPolicy());
  const Rules rules = TRY(policy::Compile(texts));
  TRY(Print(CountRules(rules.get()) + " in force at " +
            EscapeControls(place.address.mountpoint) + "\n"));
  return 0;
}

}  // namespace txfs::cli
