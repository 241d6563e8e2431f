#include "policy/policy.h"

#include <algorithm>
#include <array>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, 3> kActions{"allow", "audit", "deny"};

/// Shows each name in `path`, in lower case, to `visit`.
template <class Visit>
void ForEachName(std::string_view path, const Visit& visit) {
  std::string lower;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (std::ranges::none_of(name, IsUpper)) {
      visit(name);
      continue;
    }
    lower.assign(name);
    std::ranges::transform(lower, lower.begin(), ToLower);
    visit(std::string_view(lower));
  }
}

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
  return !condition.layer || *condition.layer == event.layer;
}

bool IsExcepted(const Condition& unless, const Event& event) {
  return IsIn(unless, event) && IsBy(unless, event, Unknown::kDoesNot) &&
         (unless.paths.empty() ||
          std::ranges::any_of(unless.paths, [&](const Glob& glob) {
            return glob.Matches(event.path);
          }));
}

/// All but the paths, of which one matches already.
bool IsMeant(const Rule& rule, const Event& event) {
  if ((rule.ops & event.mask()) == 0 || !IsIn(rule.when, event) ||
      !IsBy(rule.when, event, Unknown::kMatches)) {
    return false;
  }
  return std::ranges::none_of(rule.unless, [&](const Condition& unless) {
    return IsExcepted(unless, event);
  });
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

Policy::Policy(std::vector<Rule> rules, uint64_t hash)
    : rules_(std::move(rules)), hash_(hash) {
  for (uint32_t i = 0; i < rules_.size(); ++i) Index(i);
}

void Policy::Index(uint32_t rule) {
  const Rule& added = rules_[rule];
  cares_ |= added.ops;
  if (added.when.paths.empty()) pathless_.push_back(rule);
  for (uint32_t i = 0; i < added.when.paths.size(); ++i) {
    std::string key = Lowered(added.when.paths[i].Key());
    auto& patterns = key.empty() ? nameless_ : by_name_[std::move(key)];
    patterns.push_back({rule, i});
  }
}

template <class Visit>
void Policy::ForEachPattern(std::string_view path, const Visit& visit) const {
  std::ranges::for_each(nameless_, visit);
  if (by_name_.empty()) return;
  ForEachName(path, [&](std::string_view name) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) std::ranges::for_each(found->second, visit);
  });
}

template <class Visit>
void Policy::ForEachMatch(const Event& event, const Visit& visit) const {
  for (const uint32_t rule : pathless_) {
    if (IsMeant(rules_[rule], event)) visit(rules_[rule]);
  }
  ForEachPattern(event.path, [&](const Pattern& pattern) {
    const Rule& rule = rules_[pattern.rule];
    if ((rule.ops & event.mask()) != 0 &&
        rule.when.paths[pattern.glob].Matches(event.path) &&
        IsMeant(rule, event)) {
      visit(rule);
    }
  });
}

bool Policy::IsAbout(std::string_view path) const {
  bool found = !pathless_.empty();
  ForEachPattern(path, [&](const Pattern& pattern) {
    found =
        found || rules_[pattern.rule].when.paths[pattern.glob].Matches(path);
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
  ForEachMatch(event, [&](const Rule& rule) { matching.push_back(&rule); });
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
  policy.ForEachMatch(event, [&](const Rule& rule) {
    const bool decides =
        verdict.rule == nullptr || rule.action > verdict.action ||
        (rule.action == verdict.action && &rule < verdict.rule);
    if (!decides) return;
    verdict.action = rule.action;
    verdict.rule = &rule;
  });
  return verdict;
}

}  // namespace txfs::policy
