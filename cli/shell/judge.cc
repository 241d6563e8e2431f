#include "cli/shell/judge.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/plain/plain_use.h"

namespace txfs::cli {
namespace {

using policy::Action;
using policy::Class;
using policy::Confinement;
using policy::ExecRule;

/// Whether it runs in, or names, a place that no transaction covers.
bool IsOutside(const policy::Command& command,
               const policy::Surroundings& surroundings) {
  const auto is_outside = [](policy::Region region) {
    return (policy::MaskOf(region) & policy::kAllOutside) != 0;
  };
  const bool runs_outside =
      !command.directory.empty() &&
      is_outside(policy::RegionOf(command.directory, surroundings)) &&
      command.directory != surroundings.workspace;
  return runs_outside ||
         std::ranges::any_of(command.paths, [&](const auto& path) {
           return is_outside(path.region);
         });
}

/// No transaction and no sandbox here keeps what another machine does, and no
/// transaction what is outside of its workspace.
Class ClassOf(const ExecRule& rule, const policy::Command& command,
              const policy::Surroundings& surroundings) {
  if (command.remote) return Class::kIrreversible;
  const bool leaves = rule.consequence == Class::kUndoable &&
                      !rule.reads_only && IsOutside(command, surroundings);
  return leaves ? Class::kConfined : rule.consequence;
}

/// Whether the command only prints how it is used. A rule about input or files
/// holds all the same: a program may take the word for anything else.
bool AsksForHelp(const ExecRule& rule, const policy::Command& command) {
  const policy::ExecCondition& when = rule.when;
  if (!when.fed_by.empty() || !when.reads.empty() || !when.scripts.empty() ||
      when.programs.empty()) {
    return false;
  }
  constexpr auto kNoHelp = std::to_array<std::string_view>(
      {"shutdown", "halt", "poweroff", "reboot", "chown", "chgrp", "init", ">",
       "chmod", "rsync", "curl", "ssh", "dd"});
  const std::string_view name = policy::BaseName(command.program.text);
  if (std::ranges::find(kNoHelp, name) != kNoHelp.end()) return false;
  for (const policy::Word& word : command.arguments) {
    if (word.text == "--") return false;
    if (word.text == "--help" || word.text == "-help") return true;
  }
  return !command.arguments.empty() && command.arguments.back().text == "-h" &&
         command.arguments.size() <= 4;
}

/// Whether the command changes nothing, by `rules` that match it. The built-in
/// rules name programs, and only some of their options change nothing. Whoever
/// writes other rules vouches for what they match.
bool ReadsOnly(const ShellPart& part, const std::vector<ExecMatch>& matches) {
  const auto reads = [](const ExecMatch& match) {
    return match.rule->reads_only;
  };
  if (!std::ranges::all_of(matches, reads)) return false;
  const bool is_vouched_for =
      std::ranges::any_of(matches, [](const ExecMatch& match) {
        return !match.rule->id.starts_with("txfs-cmd-");
      });
  if (is_vouched_for) return true;
  if (matches.empty() && !part.is_wrapper) return false;
  const auto use = UseOf(part.command);
  return use && !use->changes;
}

/// Whether a rule names the program of `command`, so that it knows what the
/// program does; not by a pattern that nearly all names match.
bool IsListed(const policy::Policy& rules, const policy::Command& command) {
  const std::string_view program = policy::BaseName(command.program.text);
  return std::ranges::any_of(rules.exec_rules(), [&](const ExecRule& rule) {
    return !rule.unlisted &&
           std::ranges::any_of(rule.when.programs,
                               [&](const policy::TextPattern& pattern) {
                                 return !pattern.text().starts_with('*') &&
                                        pattern.Matches(program);
                               });
  });
}

PartVerdict JudgePart(const policy::Policy& rules, const ShellPart& part,
                      const policy::Surroundings& surroundings,
                      Confinement confinement) {
  PartVerdict verdict;
  policy::Surroundings here = surroundings;
  if (part.command.remote) here.workspace.clear();
  const ExecRule* decider = nullptr;
  for (const ExecRule& rule : rules.exec_rules()) {
    if (!policy::Matches(rule, part.command, here) ||
        (rule.unlisted && IsListed(rules, part.command))) {
      continue;
    }
    if (rule.action > Action::kAudit && AsksForHelp(rule, part.command)) {
      continue;
    }
    // A container takes with it what happens to its files and services.
    if (part.command.contained && rule.consequence != Class::kIrreversible) {
      continue;
    }
    const Class consequence = ClassOf(rule, part.command, here);
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
    const bool is_known = part.command.script == policy::Script::kNone;
    if (part.is_wrapper && is_known) verdict.consequence = Class::kUndoable;
    verdict.reads_only = is_known && ReadsOnly(part, verdict.matches);
    return verdict;
  }
  verdict.reads_only = ReadsOnly(part, verdict.matches);
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
  if (!reading.unknown.empty()) verdict.consequence = Class::kUnknown;
  verdict.reads_only = reading.is_plain && reading.unknown.empty();
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
