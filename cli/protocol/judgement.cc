#include "cli/protocol/judgement.h"

#include <cerrno>
#include <optional>

#include "cli/protocol/wire.h"
#include "cli/shell/verdict_format.h"

namespace txfs::cli {
namespace {

Json WordToJson(const policy::Word& word) {
  return {{"text", EncodeBytes(word.text)},
          {"known", word.known},
          {"quoted", word.quoted},
          {"prefix", word.known_prefix}};
}

policy::Word WordFromJson(const Json& json) {
  return {.text = GetBytes(json, "text"),
          .known = GetBool(json, "known"),
          .quoted = GetBool(json, "quoted"),
          .known_prefix = GetUint(json, "prefix")};
}

Json PathsToJson(const std::vector<policy::PathArgument>& paths) {
  Json array = Json::array();
  for (const policy::PathArgument& path : paths) {
    array.push_back({{"path", EncodeBytes(path.path)},
                     {"place", policy::NameOf(path.region)},
                     {"argument", path.argument}});
  }
  return array;
}

std::vector<policy::PathArgument> PathsFromJson(const Json& array) {
  std::vector<policy::PathArgument> paths;
  for (const Json& path : array) {
    paths.push_back({.path = GetBytes(path, "path"),
                     .region = policy::RegionNamed(GetBytes(path, "place"))
                                   .value_or(policy::Region::kUnknown),
                     .argument = GetUint(path, "argument")});
  }
  return paths;
}

Json PartToJson(const ShellPart& part) {
  const policy::Command& command = part.command;
  Json arguments = Json::array();
  for (const policy::Word& word : command.arguments) {
    arguments.push_back(WordToJson(word));
  }
  return {{"program", WordToJson(command.program)},
          {"arguments", std::move(arguments)},
          {"directory", EncodeBytes(command.directory)},
          {"environment", EncodeList(command.environment)},
          {"remote", command.remote},
          {"contained", command.contained},
          {"fed_by", EncodeList(command.fed_by)},
          {"input", EncodeBytes(command.input)},
          {"script", policy::NameOf(command.script)},
          {"reads", PathsToJson(command.reads)},
          {"paths", PathsToJson(command.paths)},
          {"via", EncodeList(part.via)},
          {"wrapper", part.is_wrapper},
          {"guess", part.is_guess}};
}

ShellPart PartFromJson(const Json& json) {
  ShellPart part;
  policy::Command& command = part.command;
  command.program = WordFromJson(GetMember(json, "program"));
  for (const Json& word : GetMember(json, "arguments")) {
    command.arguments.push_back(WordFromJson(word));
  }
  command.directory = GetBytes(json, "directory");
  command.environment = DecodeList(GetMember(json, "environment"));
  command.remote = GetBool(json, "remote");
  command.contained = GetBool(json, "contained");
  command.fed_by = DecodeList(GetMember(json, "fed_by"));
  command.input = GetBytes(json, "input");
  command.script = policy::ScriptNamed(GetBytes(json, "script"))
                       .value_or(policy::Script::kUnknown);
  command.reads = PathsFromJson(GetMember(json, "reads"));
  command.paths = PathsFromJson(GetMember(json, "paths"));
  part.via = DecodeList(GetMember(json, "via"));
  part.is_wrapper = GetBool(json, "wrapper");
  part.is_guess = GetBool(json, "guess");
  return part;
}

policy::Confinement ConfinementNamed(std::string_view name) {
  for (const auto one :
       {policy::Confinement::kMount, policy::Confinement::kRun}) {
    if (policy::NameOf(one) == name) return one;
  }
  return policy::Confinement::kNone;
}

CommandVerdict JudgeCommand(const Json& request, const policy::Policy& rules) {
  const policy::Surroundings surroundings{
      .workspace = GetBytes(request, "workspace"),
      .home = GetBytes(request, "home"),
      .temporary = GetBytes(request, "temporary"),
      .is_workspace = GetBool(request, "is_workspace")};
  ShellReading reading;
  reading.unknown = DecodeList(GetMember(request, "unknown"));
  reading.is_plain = GetBool(request, "plain");
  for (const Json& part : GetMember(request, "parts")) {
    // One more says that there are too many.
    if (reading.parts.size() > kMaxShellParts) break;
    reading.parts.push_back(PartFromJson(part));
  }
  return Judge(rules, std::move(reading), surroundings,
               ConfinementNamed(GetBytes(request, "where")));
}

}  // namespace

RuleVerdict Summarize(const CommandVerdict& verdict) {
  RuleVerdict summary{.action = verdict.action,
                      .consequence = verdict.consequence,
                      .reads_only = verdict.reads_only,
                      .rule = {},
                      .reason = {},
                      .suggest = {}};
  if (const policy::ExecRule* rule = verdict.rule()) {
    summary.rule = rule->id;
    summary.reason = rule->reason;
    summary.suggest = rule->suggest;
  }
  return summary;
}

RuleVerdict Summarize(const policy::Explanation& explanation) {
  RuleVerdict summary{.action = explanation.verdict.action,
                      .consequence = policy::Class::kUndoable,
                      .reads_only = false,
                      .rule = {},
                      .reason = {},
                      .suggest = {}};
  if (const policy::Rule* rule = explanation.verdict.rule) {
    summary.rule = rule->id;
    summary.reason = rule->reason;
    summary.suggest = rule->suggest;
  }
  return summary;
}

Json JudgeRequest(const ShellReading& reading,
                  const policy::Surroundings& surroundings,
                  policy::Confinement confinement) {
  Json parts = Json::array();
  for (const ShellPart& part : reading.parts) parts.push_back(PartToJson(part));
  return {{"request", "judge"},
          {"parts", std::move(parts)},
          {"unknown", EncodeList(reading.unknown)},
          {"plain", reading.is_plain},
          {"workspace", EncodeBytes(surroundings.workspace)},
          {"home", EncodeBytes(surroundings.home)},
          {"temporary", EncodeBytes(surroundings.temporary)},
          {"is_workspace", surroundings.is_workspace},
          {"where", policy::NameOf(confinement)}};
}

Json JudgeRequest(const policy::Proposal& proposal) {
  return {{"request", "judge"},
          {"op", policy::NameOf(proposal.op)},
          {"path", EncodeBytes(proposal.path)},
          {"new_path", EncodeBytes(proposal.new_path)}};
}

std::string FormatVerdict(const CommandVerdict& verdict, ExplainForm form) {
  return form == ExplainForm::kJson ? Dump(VerdictDocument(verdict), 2) + "\n"
                                    : VerdictText(verdict);
}

Json ExplainRequest(Json request, ExplainForm form) {
  request["explain"] = form == ExplainForm::kJson ? "json" : "text";
  return request;
}

std::optional<std::string> AnswerExplain(const Json& request,
                                         const policy::Policy& rules) {
  const std::string form = GetBytes(request, "explain");
  if (form.empty() || !request.contains("parts")) return std::nullopt;
  return FormatVerdict(JudgeCommand(request, rules), form == "json"
                                                         ? ExplainForm::kJson
                                                         : ExplainForm::kText);
}

Result<RuleVerdict> AnswerJudge(
    const Json& request, const policy::Policy& rules,
    const std::function<bool(const std::string&)>& is_in_base) {
  if (request.contains("parts")) return Summarize(JudgeCommand(request, rules));
  const auto op = policy::OpNamed(GetBytes(request, "op"));
  if (!op) return Fail(EINVAL, "the request has no command and no operation");
  policy::Proposal proposal;
  proposal.op = *op;
  proposal.path = GetBytes(request, "path");
  proposal.new_path = GetBytes(request, "new_path");
  if (!is_in_base(proposal.path)) proposal.layer = policy::Layer::kNew;
  return Summarize(policy::Explain(rules, proposal));
}

Json ToJson(const RuleVerdict& verdict) {
  return {{"action", policy::NameOf(verdict.action)},
          {"class", policy::NameOf(verdict.consequence)},
          {"read_only", verdict.reads_only},
          {"rule", EncodeBytes(verdict.rule)},
          {"reason", EncodeBytes(verdict.reason)},
          {"suggest", EncodeBytes(verdict.suggest)}};
}

RuleVerdict RuleVerdictFromJson(const Json& json) {
  // What is not understood allows nothing.
  return {.action = policy::ActionNamed(GetBytes(json, "action"))
                        .value_or(policy::Action::kDeny),
          .consequence = policy::ClassNamed(GetBytes(json, "class"))
                             .value_or(policy::Class::kIrreversible),
          .reads_only = GetBool(json, "read_only"),
          .rule = GetBytes(json, "rule"),
          .reason = GetBytes(json, "reason"),
          .suggest = GetBytes(json, "suggest")};
}

}  // namespace txfs::cli
