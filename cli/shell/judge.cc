#include "cli/shell/judge.h"

#include <algorithm>
#include <utility>

namespace txfs::cli {
namespace {

using policy::Action;
using policy::Class;
using policy::Confinement;
using policy::ExecRule;

/// No transaction and no sandbox here keeps what another machine does.
Class ClassOf(const ExecRule& rule, const policy::Command& command) {
  return command.remote ? Class::kIrreversible : rule.consequence;
}

PartVerdict JudgePart(const policy::Policy& rules, const ShellPart& part,
                      const policy::Surroundings& surroundings,
                      Confinement confinement) {
  PartVerdict verdict;
  policy::Surroundings here = surroundings;
  if (part.command.remote) here.workspace.clear();
  const ExecRule* decider = nullptr;
  for (const ExecRule& rule : rules.exec_rules()) {
    if (!policy::Matches(rule, part.command, here)) continue;
    const Class consequence = ClassOf(rule, part.command);
    const Action action = policy::Soften(rule.action, consequence, confinement);
    verdict.matches.push_back({&rule, action});
    // The strongest here; of equal ones the stronger by itself, then the first.
    const bool decides =
        decider == nullptr || action > verdict.action ||
        (action == verdict.action && rule.action > decider->action);
    if (!decides) continue;
    decider = &rule;
    verdict.action = action;
    verdict.consequence = consequence;
    verdict.decider = static_cast<int>(verdict.matches.size()) - 1;
  }
  if (decider == nullptr) {
    // Of a wrapper, its command is judged.
    if (part.is_wrapper) verdict.consequence = Class::kUndoable;
    verdict.reads_only = part.is_wrapper;
    return verdict;
  }
  verdict.reads_only = std::ranges::all_of(
      verdict.matches,
      [](const ExecMatch& match) { return match.rule->reads_only; });
  return verdict;
}

}  // namespace

const ExecRule* CommandVerdict::rule() const {
  if (decider < 0) return nullptr;
  const PartVerdict& part = parts[static_cast<size_t>(decider)];
  if (part.decider < 0) return nullptr;
  return part.matches[static_cast<size_t>(part.decider)].rule;
}

CommandVerdict Judge(const policy::Policy& rules, ShellReading reading,
                     const policy::Surroundings& surroundings,
                     Confinement confinement) {
  CommandVerdict verdict;
  verdict.confinement = confinement;
  if (!reading.unknown.empty()) {
    verdict.consequence = Class::kUnknown;
    verdict.reads_only = false;
  }
  const ExecRule* decider = nullptr;
  for (const ShellPart& part : reading.parts) {
    PartVerdict one = JudgePart(rules, part, surroundings, confinement);
    verdict.consequence = std::max(verdict.consequence, one.consequence);
    verdict.reads_only = verdict.reads_only && one.reads_only;
    const ExecRule* rule =
        one.decider < 0 ? nullptr
                        : one.matches[static_cast<size_t>(one.decider)].rule;
    const bool decides =
        rule != nullptr &&
        (decider == nullptr || one.action > verdict.action ||
         (one.action == verdict.action && rule->action > decider->action));
    if (decides) {
      decider = rule;
      verdict.action = one.action;
      verdict.decider = static_cast<int>(verdict.parts.size());
    }
    verdict.parts.push_back(std::move(one));
  }
  verdict.reading = std::move(reading);
  return verdict;
}

}  // namespace txfs::cli
