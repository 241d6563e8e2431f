#include "policy/lint.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace txfs::policy {
namespace {

bool IsPartOf(const std::vector<std::string>& some,
              const std::vector<std::string>& all) {
  return std::ranges::all_of(some, [&](const std::string& one) {
    return std::ranges::find(all, one) != all.end();
  });
}

/// Whether `wide` is about all that `narrow` is about, as far as their texts
/// tell.
bool Covers(const Rule& wide, const Rule& narrow) {
  const Condition& when = wide.when;
  if (!wide.unless.empty() || !when.exes.empty() || !when.uids.empty() ||
      (when.layer && when.layer != narrow.when.layer) || !when.types.empty() ||
      !wide.with_directory || wide.nocase != narrow.nocase ||
      (narrow.ops & ~wide.ops) != 0) {
    return false;
  }
  return IsPartOf(narrow.when.patterns, when.patterns);
}

/// Whether `rule` puts a question: each that matches has to be answered.
bool Asks(const Rule& rule) {
  return rule.action == Action::kHook || rule.action == Action::kAsk;
}

/// Whether `rule` is judged at another moment than `other`, so that neither
/// decides for the other; what is refused never comes to a commit.
bool IsApart(const Rule& rule, const Rule& other) {
  const bool holds = rule.action == Action::kHold;
  const bool other_holds = other.action == Action::kHold;
  return (holds || other_holds) && rule.action != Action::kDeny &&
         !(holds && other_holds && rule.content == ContentKind::kAny);
}

/// The rule because of which `rules[i]` never decides; or null.
const Rule* FindShadow(std::span<const Rule> rules, size_t i) {
  for (size_t k = 0; k < rules.size(); ++k) {
    const bool goes_before = rules[k].action > rules[i].action ||
                             (rules[k].action == rules[i].action && k < i);
    const bool both_count = Asks(rules[k]) && Asks(rules[i]);
    if (goes_before && !both_count && !IsApart(rules[k], rules[i]) &&
        Covers(rules[k], rules[i])) {
      return &rules[k];
    }
  }
  return nullptr;
}

/// Whether all that `narrow` counts, `wide` counts, as far as their texts tell.
bool CountsAll(const Limit& wide, const Limit& narrow) {
  const bool has_all =
      wide.patterns.empty() ||
      (!narrow.patterns.empty() && IsPartOf(narrow.patterns, wide.patterns));
  return has_all && IsPartOf(wide.except_patterns, narrow.except_patterns);
}

/// Whether what exceeds `loose` always exceeds `tight`, too.
bool IsWithin(const Limit& tight, const Limit& loose) {
  const bool same = tight.of == loose.of && tight.window == loose.window &&
                    CountsAll(tight, loose) &&
                    tight.max.value_or(0) <= loose.max.value_or(0);
  if (!same || !tight.fraction) return same;
  // Parts of the same whole.
  return loose.fraction && *tight.fraction <= *loose.fraction &&
         CountsAll(loose, tight);
}

/// The limit because of which `limits[i]` is never exceeded alone; or null. At
/// a commit each is accepted by itself.
const Limit* FindTighter(std::span<const Limit> limits, size_t i) {
  const Limit& loose = limits[i];
  for (size_t k = 0; k < limits.size(); ++k) {
    const Limit& tight = limits[k];
    if (k == i || loose.at_commit || tight.at_commit) continue;
    if (tight.action < loose.action || !IsWithin(tight, loose)) continue;
    // Of equal ones the first counts, and of those that note it is noted.
    const bool only_first =
        tight.action == loose.action &&
        (tight.action == Action::kAudit || IsWithin(loose, tight));
    if (k < i || !only_first) return &tight;
  }
  return nullptr;
}

bool CountsNothing(const Limit& limit) {
  return !limit.patterns.empty() &&
         IsPartOf(limit.patterns, limit.except_patterns);
}

void LintLimits(std::span<const Limit> limits, std::vector<Warning>& warnings) {
  for (size_t i = 0; i < limits.size(); ++i) {
    const Limit& limit = limits[i];
    const auto warn = [&](const std::string& what) {
      warnings.push_back({limit.place, "limit " + limit.id + " " + what});
    };
    if (CountsNothing(limit)) {
      warn("counts nothing: unless excludes all of its paths");
    } else if (const Limit* tighter = FindTighter(limits, i)) {
      warn("has no effect: " + tighter->id + " (" + tighter->place.ToString() +
           ") is at least as strict");
    }
  }
}

std::string_view TextOfPattern(const TextPattern& pattern) {
  return pattern.text();
}

std::vector<std::string_view> TextsOfPatterns(
    const std::vector<TextPattern>& patterns) {
  std::vector<std::string_view> texts;
  for (const TextPattern& pattern : patterns) texts.push_back(pattern.text());
  return texts;
}

/// Whether each of `some` is one of `all`, by `text_of`.
template <class T, class TextOf>
bool AreAmong(const std::vector<T>& some, const std::vector<T>& all,
              const TextOf& text_of) {
  return std::ranges::all_of(some, [&](const T& one) {
    return std::ranges::any_of(all, [&](const T& other) {
      return std::invoke(text_of, one) == std::invoke(text_of, other);
    });
  });
}

/// Whether what matches one of `narrow` matches one of `wide`. None of `wide`:
/// anything does.
template <class T, class TextOf>
bool CoversAny(const std::vector<T>& wide, const std::vector<T>& narrow,
               const TextOf& text_of) {
  return wide.empty() || (!narrow.empty() && AreAmong(narrow, wide, text_of));
}

bool CoversTexts(const std::vector<TextPattern>& wide,
                 const std::vector<TextPattern>& narrow) {
  return CoversAny(wide, narrow, &TextOfPattern);
}

/// Of lists of which each must match.
bool CoversAll(const std::vector<std::vector<TextPattern>>& wide,
               const std::vector<std::vector<TextPattern>>& narrow) {
  return std::ranges::all_of(wide, [&](const auto& alternatives) {
    return std::ranges::any_of(narrow, [&](const auto& other) {
      return AreAmong(other, alternatives, &TextOfPattern);
    });
  });
}

bool CoversPaths(const ExecCondition& wide, const ExecCondition& narrow) {
  if (wide.regions == 0 && wide.paths.empty()) return true;
  const bool has_regions =
      wide.regions == 0 ||
      (narrow.regions != 0 && (narrow.regions & ~wide.regions) == 0);
  const bool same_operand =
      wide.operand == Operand::kAny || wide.operand == narrow.operand;
  return has_regions && same_operand &&
         CoversAny(wide.paths, narrow.paths, &ExecCondition::Path::text);
}

/// Whether `wide` is about all commands that `narrow` is about, as far as their
/// texts tell.
bool Covers(const ExecRule& wide, const ExecRule& narrow) {
  const ExecCondition& all = wide.when;
  const ExecCondition& some = narrow.when;
  const bool same_kind = wide.unless.empty() && !wide.unlisted &&
                         wide.nocase == narrow.nocase &&
                         wide.reads_only == narrow.reads_only;
  return same_kind && CoversTexts(all.programs, some.programs) &&
         CoversAny(all.subcommands, some.subcommands, &TextsOfPatterns) &&
         CoversTexts(all.verbs, some.verbs) &&
         (all.verbs.empty() ||
          TextsOfPatterns(all.verb_ends) == TextsOfPatterns(some.verb_ends)) &&
         CoversTexts(all.any_arg, some.any_arg) &&
         CoversAll(all.all_args, some.all_args) &&
         CoversTexts(all.text, some.text) && CoversTexts(all.sql, some.sql) &&
         CoversPaths(all, some) &&
         CoversAny(all.reads, some.reads, &ExecCondition::Path::text) &&
         CoversTexts(all.fed_by, some.fed_by) &&
         CoversTexts(all.env, some.env) &&
         CoversAny(all.scripts, some.scripts, std::identity()) &&
         (!all.remote || all.remote == some.remote) &&
         (!all.operands || all.operands == some.operands);
}

/// Whether a word such as --help does not lift a rule with this condition.
bool HoldsForHelp(const ExecCondition& when) {
  return when.programs.empty() || !when.fed_by.empty() || !when.reads.empty() ||
         !when.scripts.empty();
}

/// Whether `rule` decides before `other`, wherever a command runs that both
/// match. A rule about the workspace counts as a confined one outside of it,
/// and one that a container confines does not count there.
bool GoesBefore(const ExecRule& rule, const ExecRule& other, bool is_first) {
  const auto at = [](const ExecRule& one, Confinement confinement,
                     bool is_outside) {
    const bool leaves =
        is_outside && one.consequence == Class::kUndoable && !one.reads_only;
    return Soften(one.action, leaves ? Class::kConfined : one.consequence,
                  confinement);
  };
  const bool holds_in_containers = rule.consequence == Class::kIrreversible ||
                                   other.consequence != Class::kIrreversible;
  for (const auto confinement :
       {Confinement::kNone, Confinement::kMount, Confinement::kRun}) {
    for (const bool is_outside : {false, true}) {
      const std::pair one(at(rule, confinement, is_outside), rule.action);
      const std::pair two(at(other, confinement, is_outside), other.action);
      if (one < two || (one == two && !is_first)) return false;
    }
  }
  return holds_in_containers &&
         (HoldsForHelp(rule.when) || !HoldsForHelp(other.when));
}

/// The rule because of which `rules[i]` never decides; or null.
const ExecRule* FindShadow(std::span<const ExecRule> rules, size_t i) {
  for (size_t k = 0; k < rules.size(); ++k) {
    if (k != i && GoesBefore(rules[k], rules[i], k < i) &&
        Covers(rules[k], rules[i])) {
      return &rules[k];
    }
  }
  return nullptr;
}

template <class AnyRule>
void LintRules(std::span<const AnyRule> rules, std::vector<Warning>& warnings) {
  for (size_t i = 0; i < rules.size(); ++i) {
    const AnyRule& rule = rules[i];
    const auto warn = [&](const std::string& what) {
      warnings.push_back({rule.place, "rule " + rule.id + " " + what});
    };
    if (const AnyRule* shadow = FindShadow(rules, i)) {
      warn("never decides: " + shadow->id + " (" + shadow->place.ToString() +
           ") matches everything that it matches");
    }
    if (rule.examples.empty()) {
      warn("has no examples: add match and not_match");
    }
  }
}

}  // namespace

std::vector<Warning> Lint(std::span<const Rule> rules,
                          std::span<const Limit> limits,
                          std::span<const ExecRule> exec_rules) {
  std::vector<Warning> warnings;
  LintRules(rules, warnings);
  LintLimits(limits, warnings);
  LintRules(exec_rules, warnings);
  return warnings;
}

}  // namespace txfs::policy
