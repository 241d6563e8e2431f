#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/exec_rule.h"
#include "policy/limit.h"
#include "policy/needles.h"
#include "policy/rule.h"
#include "policy/settings.h"

namespace txfs::policy {

/// The verdict on an event: the strongest action of all matching rules, and the
/// first rule with it. nullptr: no rule matches.
struct Verdict {
  Action action = Action::kAllow;
  const Rule* rule = nullptr;
};

/// Compiled rules. Immutable, so that it can be read without a lock and
/// replaced as a whole.
class Policy {
 public:
  Policy() = default;
  /// `rules`: in the order of their sources, the weakest source first.
  explicit Policy(std::vector<Rule> rules, uint64_t hash = 1,
                  std::vector<Limit> limits = {}, Settings settings = {},
                  std::vector<ExecRule> exec_rules = {});
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;

  [[nodiscard]] std::span<const Rule> rules() const { return rules_; }
  [[nodiscard]] std::span<const Limit> limits() const { return limits_; }
  /// Rules about commands (docs/commands.md).
  [[nodiscard]] std::span<const ExecRule> exec_rules() const {
    return exec_rules_;
  }
  /// Of the rules; never 0 if there are any.
  [[nodiscard]] uint64_t hash() const { return hash_; }
  /// How rules' questions are answered.
  [[nodiscard]] const Settings& settings() const { return settings_; }
  /// Whether any rule matches events with one of these ops or effects.
  [[nodiscard]] bool Cares(Mask mask) const { return (cares_ & mask) != 0; }
  /// Whether one of those rules might match a path below the directory `path`.
  [[nodiscard]] bool MayMatchBelow(Mask mask, std::string_view path) const;

  /// Whether any rule matches `path`, for some operation, program and user.
  [[nodiscard]] bool IsAbout(std::string_view path) const;

  /// All rules that match `event`, in their order.
  [[nodiscard]] std::vector<const Rule*> Matching(const Event& event) const;

 private:
  friend Verdict Evaluate(const Policy& policy, const Event& event);

  struct Pattern {
    uint32_t rule;
    uint32_t glob;
  };

  void Index();
  /// Calls `visit` with the patterns that may match `path`.
  template <class Visit>
  void ForEachPattern(std::string_view path, const Visit& visit) const;
  /// Calls `visit` with the rules that match `event` and for which `wants`,
  /// called before, returns true. A rule may be visited more than once.
  template <class Wants, class Visit>
  void ForEachMatch(const Event& event, const Wants& wants,
                    const Visit& visit) const;
  [[nodiscard]] const Glob& GlobOf(const Pattern& pattern) const {
    return rules_[pattern.rule].when.paths[pattern.glob];
  }

  std::vector<Rule> rules_;
  std::vector<Limit> limits_;
  std::vector<ExecRule> exec_rules_;
  uint64_t hash_ = 0;
  Settings settings_;
  Mask cares_ = 0;
  /// Needles, the patterns for each needle, and the patterns without one. A
  /// path that matches a pattern contains the pattern's needle.
  Needles needles_;
  std::vector<std::vector<Pattern>> by_needle_;
  std::vector<Pattern> needleless_;
  std::vector<uint32_t> pathless_;  ///< rules that match every path
};

/// The verdict of `policy` on `event`. Pure; under 1 us for 200 rules.
[[nodiscard]] Verdict Evaluate(const Policy& policy, const Event& event);

}  // namespace txfs::policy
