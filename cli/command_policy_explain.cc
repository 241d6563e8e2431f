#include "cli/commands.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/policy_rules.h"
#include "cli/text.h"
#include "policy/explain.h"

namespace txfs::cli {
namespace {

using policy::Answer;
using policy::Match;
using policy::Question;
using policy::Rule;

/// The one that is in the transaction: a path as it is asked for may begin with
/// a slash or "./".
std::string PlainPath(std::string path) {
  while (path.starts_with("./")) path.erase(0, 2);
  while (path.starts_with('/')) path.erase(0, 1);
  while (path.ends_with('/')) path.pop_back();
  return path;
}

Result<Question> QuestionOf(const PolicyExplainArguments& arguments) {
  const auto op = policy::OpNamed(arguments.op);
  if (!op) {
    return Fail(ErrorKind::kUsage, 0, "no operation is called " + arguments.op,
                "`txfs log` shows what they are called");
  }
  const bool two_ends = *op == policy::Op::kRename ||
                        *op == policy::Op::kExchange ||
                        *op == policy::Op::kLink;
  if (!arguments.new_path.empty() && !two_ends) {
    return Fail(ErrorKind::kUsage, 0, arguments.op + " has one path",
                "name a second one with rename, exchange or link");
  }
  return Question{
      .op = *op,
      .path = PlainPath(arguments.path),
      .new_path = PlainPath(arguments.new_path),
      .layer = arguments.is_new ? policy::Layer::kNew : policy::Layer::kBase,
      .exe = arguments.exe};
}

Document MatchDocument(const Match& match, const Answer& answer) {
  const Rule& rule = *match.rule;
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  PutPath(document, "file", rule.place.file);
  document["line"] = rule.place.line;
  PutPath(document, "path", match.path);
  document["decides"] = match.rule == answer.verdict.rule;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string AnswerJson(const Answer& answer) {
  Document document;
  const Rule* decider = answer.verdict.rule;
  document["verdict"] = policy::NameOf(answer.verdict.action);
  document["decided_by"] =
      decider == nullptr ? Document() : Document(decider->id);
  document["rules"] = Document::array();
  for (const Match& match : answer.matches) {
    document["rules"].push_back(MatchDocument(match, answer));
  }
  return Dump(document, 2) + "\n";
}

std::string AnswerText(const Answer& answer, bool two_ends) {
  const Rule* decider = answer.verdict.rule;
  std::string text = std::string(policy::NameOf(answer.verdict.action)) + "\n";
  for (const Match& match : answer.matches) {
    const Rule& rule = *match.rule;
    text += match.rule == decider ? "* " : "  ";
    text += std::string(policy::NameOf(rule.action)) + " " + rule.id + " (" +
            EscapeControls(rule.place.ToString()) + ")" +
            (two_ends ? " at " + EscapeControls(match.path) : "") + ": " +
            EscapeControls(rule.reason) + "\n";
  }
  if (decider != nullptr) {
    text += "instead: " + EscapeControls(decider->suggest) + "\n";
  }
  return text;
}

}  // namespace

Result<int> RunPolicyExplain(const Context& context,
                             const PolicyExplainArguments& arguments) {
  const Question question = TRY(QuestionOf(arguments));
  const Rules rules = TRY(RulesFor(context, arguments.file));
  const Answer answer = policy::Explain(*rules, question);
  Output output;
  output.Write(arguments.json ? AnswerJson(answer)
                              : AnswerText(answer, !question.new_path.empty()));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
