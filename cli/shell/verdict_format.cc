#include "cli/shell/verdict_format.h"

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

using policy::ExecRule;

Document Strings(const std::vector<std::string>& texts) {
  Document array = Document::array();
  for (const std::string& text : texts) array.push_back(ToUtf8(text));
  return array;
}

Document PathDocument(const policy::PathArgument& path) {
  Document document;
  PutPath(document, "path", path.path);
  document["place"] = policy::NameOf(path.region);
  document["argument"] = path.argument == policy::kNoArgument
                             ? Document()
                             : Document(path.argument + 1);
  return document;
}

Document ExecMatchDocument(const ExecMatch& match, bool decides) {
  const ExecRule& rule = *match.rule;
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  document["verdict"] = policy::NameOf(match.action);
  document["class"] = policy::NameOf(rule.consequence);
  PutPath(document, "file", rule.place.file);
  document["line"] = rule.place.line;
  document["decides"] = decides;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

Document PartDocument(const ShellPart& part, const PartVerdict& verdict) {
  const policy::Command& command = part.command;
  Document document;
  document["argv"] = Document::array({ToUtf8(command.program.text)});
  Document unknown = Document::array();
  if (!command.program.known) unknown.push_back(0);
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    document["argv"].push_back(ToUtf8(command.arguments[i].text));
    if (!command.arguments[i].known) unknown.push_back(i + 1);
  }
  document["unknown_arguments"] = std::move(unknown);
  document["via"] = Strings(part.via);
  PutPath(document, "directory", command.directory);
  document["remote"] = command.remote;
  document["guess"] = part.is_guess;
  document["verdict"] = policy::NameOf(verdict.action);
  document["class"] = policy::NameOf(verdict.consequence);
  document["read_only"] = verdict.reads_only;
  document["paths"] = Document::array();
  for (const auto& path : command.paths) {
    document["paths"].push_back(PathDocument(path));
  }
  document["reads"] = Document::array();
  for (const auto& path : command.reads) {
    document["reads"].push_back(PathDocument(path));
  }
  document["fed_by"] = Strings(command.fed_by);
  document["script"] = policy::NameOf(command.script);
  document["rules"] = Document::array();
  for (size_t i = 0; i < verdict.matches.size(); ++i) {
    document["rules"].push_back(ExecMatchDocument(
        verdict.matches[i], static_cast<int>(i) == verdict.decider));
  }
  return document;
}

std::string LineOfPart(const ShellPart& part) {
  std::string line;
  for (const std::string& via : part.via) line += via + " > ";
  line += QuoteShell(part.command.program.text);
  for (const policy::Word& word : part.command.arguments) {
    line += " " + (word.known ? QuoteShell(word.text) : word.text);
  }
  constexpr size_t kMaxLine = 200;
  if (line.size() > kMaxLine) line = line.substr(0, kMaxLine) + "...";
  if (part.is_guess) line += " (guess)";
  return EscapeControls(line);
}

}  // namespace

Document VerdictDocument(const CommandVerdict& verdict) {
  Document document;
  const ExecRule* rule = verdict.rule();
  document["verdict"] = policy::NameOf(verdict.action);
  document["class"] = policy::NameOf(verdict.consequence);
  document["read_only"] = verdict.reads_only;
  document["where"] = policy::NameOf(verdict.confinement);
  document["decided_by"] = rule == nullptr ? Document() : Document(rule->id);
  document["reason"] = rule == nullptr ? Document() : Document(rule->reason);
  document["suggest"] = rule == nullptr ? Document() : Document(rule->suggest);
  document["parts"] = Document::array();
  for (size_t i = 0; i < verdict.parts.size(); ++i) {
    Document part = PartDocument(verdict.reading.parts[i], verdict.parts[i]);
    part["decides"] = static_cast<int>(i) == verdict.decider;
    document["parts"].push_back(std::move(part));
  }
  document["unknown"] = Strings(verdict.reading.unknown);
  return document;
}

std::string VerdictText(const CommandVerdict& verdict) {
  std::string text = std::string(policy::NameOf(verdict.action)) + " (" +
                     std::string(policy::NameOf(verdict.consequence)) + ")\n";
  for (size_t i = 0; i < verdict.parts.size(); ++i) {
    const PartVerdict& part = verdict.parts[i];
    text += "  " + LineOfPart(verdict.reading.parts[i]) + "\n";
    for (size_t k = 0; k < part.matches.size(); ++k) {
      const auto& [rule, action] = part.matches[k];
      const bool decides = static_cast<int>(i) == verdict.decider &&
                           static_cast<int>(k) == part.decider;
      text += decides ? "  * " : "    ";
      text += std::string(policy::NameOf(rule->action)) + " " + rule->id +
              " (" + EscapeControls(rule->place.ToString()) + ")" +
              (action == rule->action
                   ? ""
                   : ", " + std::string(policy::NameOf(action)) + " here") +
              ": " + EscapeControls(rule->reason) + "\n";
    }
  }
  for (const std::string& sentence : verdict.reading.unknown) {
    text += "unknown: " + EscapeControls(sentence) + "\n";
  }
  const ExecRule* rule = verdict.rule();
  if (rule != nullptr && verdict.action > policy::Action::kHold) {
    text += "instead: " + EscapeControls(rule->suggest) + "\n";
  }
  return text;
}

}  // namespace txfs::cli
