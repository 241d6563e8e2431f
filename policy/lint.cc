#include "policy/lint.h"

#include <algorithm>

namespace txfs::policy {
namespace {

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
  return std::ranges::all_of(
      narrow.when.patterns, [&](const std::string& pattern) {
        return std::ranges::find(when.patterns, pattern) != when.patterns.end();
      });
}

/// Whether `rule` puts a question: each that matches has to be answered.
bool Asks(const Rule& rule) {
  return rule.action == Action::kHook || rule.action == Action::kAsk;
}

/// The rule because of which `rules[i]` never decides; or null.
const Rule* FindShadow(std::span<const Rule> rules, size_t i) {
  for (size_t k = 0; k < rules.size(); ++k) {
    const bool goes_before = rules[k].action > rules[i].action ||
                             (rules[k].action == rules[i].action && k < i);
    const bool both_count = Asks(rules[k]) && Asks(rules[i]);
    if (goes_before && !both_count && Covers(rules[k], rules[i])) {
      return &rules[k];
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Warning> Lint(std::span<const Rule> rules) {
  std::vector<Warning> warnings;
  for (size_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    const auto warn = [&](const std::string& what) {
      warnings.push_back({rule.place, "rule " + rule.id + " " + what});
    };
    if (const Rule* shadow = FindShadow(rules, i)) {
      warn("never decides: " + shadow->id + " (" + shadow->place.ToString() +
           ") is about all of it");
    }
    if (rule.examples.empty()) {
      warn("has no examples: match and not_match show what it is about");
    }
  }
  return warnings;
}

}  // namespace txfs::policy
