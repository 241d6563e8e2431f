#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/output/json.h"
#include "cli/output/limit_text.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/rules/policy_rules.h"
#include "policy/explain.h"

namespace txfs::cli {
namespace {

using policy::Explanation;
using policy::Limit;
using policy::Match;
using policy::Proposal;
using policy::Rule;

/// Where the paths of a proposal are, and what it is asked of.
struct Roots {
  Context context;
  std::vector<std::string> roots;  ///< absolute: mountpoint, workspace
};

/// Of the workspace that `path` is in, else of the one that `context` is in;
/// else of the directory, which is none yet.
Result<Roots> RootsOf(const Context& context, const std::string& path) {
  TRY(CheckWay(context.directory, path));
  Context at = context;
  at.directory = ResolveParent(context.directory, path);
  const Context& meant = IsInWorkspace(at) ? at : context;
  if (!IsInWorkspace(meant)) {
    return Roots{context, {ResolvePath(context.directory, ".")}};
  }
  const WorkspacePlace place = TRY(LocateWorkspace(meant));
  return Roots{meant, {place.root, place.real.path}};
}

/// `path` as the transaction names it.
Result<std::string> PathIn(const Roots& roots, const std::string& directory,
                           const std::string& path) {
  const std::string full = ResolveParent(directory, path);
  for (const std::string& root : roots.roots) {
    const auto below = RelativeTo(full, root);
    if (!below) continue;
    if (!below->empty()) return *below;
    return Fail(ErrorKind::kUsage, 0, "no rule applies to " + root + " itself",
                "name a path in it");
  }
  return Fail(ErrorKind::kUsage, 0,
              full + " is outside the workspace " + roots.roots.back(),
              "name a path in the workspace");
}

Result<std::optional<policy::Type>> TypeIn(
    const PolicyExplainArguments& arguments) {
  const auto type = policy::TypeNamed(arguments.type);
  if (type || arguments.type.empty()) return type;
  return Fail(ErrorKind::kUsage, 0,
              "there is no type \"" + arguments.type + "\"",
              "the types are file, directory, symlink and other");
}

Result<Proposal> ProposalOf(const Roots& roots, const std::string& directory,
                            const PolicyExplainArguments& arguments) {
  const auto op = policy::OpNamed(arguments.op);
  if (!op) {
    return Fail(ErrorKind::kUsage, 0,
                "there is no operation \"" + arguments.op + "\"",
                "`txfs log` shows the names of operations");
  }
  const bool two_ends = *op == policy::Op::kRename ||
                        *op == policy::Op::kExchange ||
                        *op == policy::Op::kLink;
  if (!arguments.new_path.empty() && !two_ends) {
    return Fail(ErrorKind::kUsage, 0, arguments.op + " takes one path",
                "only rename, exchange and link take a second one");
  }
  Proposal proposal;
  proposal.op = *op;
  proposal.path = TRY(PathIn(roots, directory, arguments.path));
  if (!arguments.new_path.empty()) {
    proposal.new_path = TRY(PathIn(roots, directory, arguments.new_path));
  }
  if (arguments.is_new) proposal.layer = policy::Layer::kNew;
  if (arguments.is_empty) proposal.layer = policy::Layer::kEmpty;
  proposal.type = TRY(TypeIn(arguments));
  proposal.exe = arguments.exe;
  return proposal;
}

Document MatchDocument(const Match& match, const Explanation& explanation) {
  const Rule& rule = *match.rule;
  Document document;
  document["id"] = rule.id;
  document["action"] = policy::NameOf(rule.action);
  PutPath(document, "file", rule.place.file);
  document["line"] = rule.place.line;
  PutPath(document, "path", match.path);
  document["decides"] = match.rule == explanation.verdict.rule;
  document["reason"] = rule.reason;
  document["suggest"] = rule.suggest;
  return document;
}

std::string ExplanationJson(const Explanation& explanation) {
  Document document;
  const Rule* decider = explanation.verdict.rule;
  document["verdict"] = policy::NameOf(explanation.verdict.action);
  document["decided_by"] =
      decider == nullptr ? Document() : Document(decider->id);
  document["rules"] = Document::array();
  for (const Match& match : explanation.matches) {
    document["rules"].push_back(MatchDocument(match, explanation));
  }
  document["limits"] = Document::array();
  for (const Limit* limit : explanation.limits) {
    document["limits"].push_back(LimitDocument(*limit));
  }
  return Dump(document, 2) + "\n";
}

std::string ExplanationText(const Explanation& explanation, bool two_ends) {
  const Rule* decider = explanation.verdict.rule;
  std::string text =
      std::string(policy::NameOf(explanation.verdict.action)) + "\n";
  for (const Match& match : explanation.matches) {
    const Rule& rule = *match.rule;
    text += match.rule == decider ? "* " : "  ";
    text += std::string(policy::NameOf(rule.action)) + " " + rule.id + " (" +
            EscapeControls(rule.place.ToString()) + ")" +
            (two_ends ? " at " + EscapeControls(match.path) : "") + ": " +
            EscapeControls(rule.reason) + "\n";
  }
  for (const Limit* limit : explanation.limits) {
    text += "  limit " + limit->id + " (" +
            EscapeControls(limit->place.ToString()) +
            "): " + std::string(policy::NameOf(limit->of)) + " at " +
            MomentText(*limit) + ": " + policy::AllowanceOf(*limit) + "\n";
  }
  if (decider != nullptr) {
    text += "instead: " + EscapeControls(decider->suggest) + "\n";
  }
  return text;
}

}  // namespace

Result<int> RunPolicyExplain(const Context& context,
                             const PolicyExplainArguments& arguments) {
  const Roots roots = TRY(RootsOf(context, arguments.path));
  const Proposal proposal =
      TRY(ProposalOf(roots, context.directory, arguments));
  const Rules rules = arguments.file
                          ? TRY(RulesOfFile(context, *arguments.file))
                          : TRY(RulesInForce(roots.context));
  const Explanation explanation = policy::Explain(*rules, proposal);
  Output output;
  output.Write(arguments.json
                   ? ExplanationJson(explanation)
                   : ExplanationText(explanation, !proposal.new_path.empty()));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
