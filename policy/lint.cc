#include "policy/lint.h"

#include <algorithm>

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

}  // namespace

std::vector<Warning> Lint(std::span<const Rule> rules,
                          std::span<const Limit> limits) {
  std::vector<Warning> warnings;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    const auto warn = [&](const std::string& what) {
      warnings.push_back({rule.place, "rule " + rule.id + " " + what});
    };
    if (const Rule* shadow = FindShadow(rules, i)) {
      warn("never decides: " + shadow->id + " (" + shadow->place.ToString() +
           ") matches everything that it matches");
    }
    if (rule.examples.empty()) {
      warn("has no examples: add match and not_match");
    }
  }
  LintLimits(limits, warnings);
  return warnings;
}

}  // namespace txfs::policy
