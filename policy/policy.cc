#include "policy/policy.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, 6> kActions{"allow", "audit", "hold",
                                                   "hook",  "ask",   "deny"};

std::string_view Relative(std::string_view exe) {
  return exe.starts_with('/') ? exe.substr(1) : exe;
}

/// A program or user that is not known may be any, and is none for sure.
enum class Unknown { kMatches, kDoesNot };

bool IsBy(const Condition& condition, const Event& event, Unknown unknown) {
  if (!condition.uids.empty()) {
    const bool is_one = event.uid
                            ? std::ranges::find(condition.uids, *event.uid) !=
                                  condition.uids.end()
                            : unknown == Unknown::kMatches;
    if (!is_one) return false;
  }
  if (condition.exes.empty()) return true;
  if (event.exe.empty()) return unknown == Unknown::kMatches;
  return std::ranges::any_of(condition.exes, [&](const Glob& glob) {
    return glob.Matches(Relative(event.exe));
  });
}

bool IsIn(const Condition& condition, const Event& event) {
  if (condition.layer && !Includes(*condition.layer, event.layer)) return false;
  return condition.types.empty() ||
         std::ranges::find(condition.types, event.type) !=
             condition.types.end();
}

bool IsAt(const Condition& condition, std::string_view path) {
  return condition.paths.empty() ||
         std::ranges::any_of(condition.paths, [&](const Glob& glob) {
           return glob.Matches(path);
         });
}

bool IsExcepted(const Condition& unless, const Event& event) {
  return IsIn(unless, event) && IsBy(unless, event, Unknown::kDoesNot) &&
         IsAt(unless, event.path);
}

bool IsExcepted(const Rule& rule, const Event& event) {
  return std::ranges::any_of(rule.unless, [&](const Condition& unless) {
    return IsExcepted(unless, event);
  });
}

/// Whether `rule` lets what it is about go along with a directory that is
/// renamed, and is about it there, too.
bool GoesAlong(const Rule& rule, const Event& event) {
  if (rule.with_directory || event.other_end.empty()) return false;
  Event there = event;
  there.path = event.other_end;
  return IsAt(rule.when, there.path) && !IsExcepted(rule, there);
}

/// All but the paths, of which one matches already.
bool IsMeant(const Rule& rule, const Event& event) {
  if ((rule.ops & event.mask()) == 0 || !IsIn(rule.when, event) ||
      !IsBy(rule.when, event, Unknown::kMatches)) {
    return false;
  }
  return !IsExcepted(rule, event) && !GoesAlong(rule, event);
}

/// How many patterns could be looked for by a text.
using Counts = std::map<std::string, size_t>;

/// The one that is met most seldom, so far as one can tell; "": there is none.
std::string BestNeedle(const Glob& glob, const Counts& counts) {
  constexpr size_t kTelling = 4;
  const auto badness = [&](const std::string& needle) {
    return std::tuple(needle.size() < kTelling, counts.at(needle),
                      -std::ssize(needle));
  };
  const std::vector<std::string> needles = glob.Needles();
  const auto best = std::ranges::min_element(needles, {}, badness);
  return best == needles.end() ? std::string() : *best;
}

}  // namespace

std::string_view NameOf(Action action) {
  return kActions.at(static_cast<size_t>(action));
}

std::optional<Action> ActionNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kActions, name);
  if (found == kActions.end()) return std::nullopt;
  return static_cast<Action>(found - kActions.begin());
}

Policy::Policy(std::vector<Rule> rules, uint64_t hash,
               std::vector<Limit> limits, Settings settings,
               std::vector<ExecRule> exec_rules)
    : rules_(std::move(rules)),
      limits_(std::move(limits)),
      exec_rules_(std::move(exec_rules)),
      hash_(hash),
      settings_(std::move(settings)) {
  Index();
}

void Policy::Index() {
  std::vector<Pattern> patterns;
  Counts counts;
  for (uint32_t rule = 0; rule < rules_.size(); ++rule) {
    const std::vector<Glob>& paths = rules_[rule].when.paths;
    cares_ |= rules_[rule].ops;
    if (paths.empty()) pathless_.push_back(rule);
    for (uint32_t i = 0; i < paths.size(); ++i) {
      patterns.push_back({rule, i});
      for (const std::string& needle : paths[i].Needles()) ++counts[needle];
    }
  }
  std::map<std::string, std::vector<Pattern>> by_needle;
  for (const Pattern& pattern : patterns) {
    by_needle[BestNeedle(GlobOf(pattern), counts)].push_back(pattern);
  }
  if (auto none = by_needle.extract("")) needleless_ = std::move(none.mapped());
  std::vector<std::string> needles;
  for (auto& [needle, some] : by_needle) {
    needles.push_back(needle);
    by_needle_.push_back(std::move(some));
  }
  needles_ = Needles(needles);
}

template <class Visit>
void Policy::ForEachPattern(std::string_view path, const Visit& visit) const {
  std::ranges::for_each(needleless_, visit);
  needles_.ForEachIn(path, [&](uint32_t needle) {
    std::ranges::for_each(by_needle_[needle], visit);
  });
}

template <class Wants, class Visit>
void Policy::ForEachMatch(const Event& event, const Wants& wants,
                          const Visit& visit) const {
  for (const uint32_t rule : pathless_) {
    const Rule& some = rules_[rule];
    if (wants(some) && IsMeant(some, event)) visit(some);
  }
  ForEachPattern(event.path, [&](const Pattern& pattern) {
    const Rule& rule = rules_[pattern.rule];
    if ((rule.ops & event.mask()) != 0 && wants(rule) &&
        GlobOf(pattern).Matches(event.path) && IsMeant(rule, event)) {
      visit(rule);
    }
  });
}

bool Policy::IsAbout(std::string_view path) const {
  bool found = !pathless_.empty();
  ForEachPattern(path, [&](const Pattern& pattern) {
    found = found || GlobOf(pattern).Matches(path);
  });
  return found;
}

bool Policy::MayMatchBelow(Mask mask, std::string_view path) const {
  return std::ranges::any_of(rules_, [&](const Rule& rule) {
    if ((rule.ops & mask) == 0) return false;
    return rule.when.paths.empty() ||
           std::ranges::any_of(rule.when.paths, [&](const Glob& glob) {
             return glob.MayMatchBelow(path);
           });
  });
}

std::vector<const Rule*> Policy::Matching(const Event& event) const {
  std::vector<const Rule*> matching;
  ForEachMatch(
      event, [](const Rule&) { return true; },
      [&](const Rule& rule) { matching.push_back(&rule); });
  std::ranges::sort(matching);
  const auto repeated = std::ranges::unique(matching);
  matching.erase(repeated.begin(), repeated.end());
  return matching;
}

Verdict Evaluate(const Policy& policy, const Event& event) {
  Verdict verdict;
  if (!policy.Cares(event.mask())) return verdict;
  // Rules lie in one array, so that the first is the one with the least
  // address.
  const auto decides = [&](const Rule& rule) {
    return verdict.rule == nullptr || rule.action > verdict.action ||
           (rule.action == verdict.action && &rule < verdict.rule);
  };
  policy.ForEachMatch(event, decides, [&](const Rule& rule) {
    if (decides(rule)) verdict = {.action = rule.action, .rule = &rule};
  });
  return verdict;
}

}  // namespace txfs::policy
