#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "tests/policy/reference.h"

namespace txfs::policy {
namespace {

using testing::ReferenceMatches;

/// A rule, and the patterns that its globs were made of.
struct Written {
  std::vector<std::string> paths;
  std::vector<std::vector<std::string>> exceptions;  ///< of each unless
  bool nocase = false;
  Rule rule;
};

rc::Gen<std::string> Joined(const std::vector<std::string>& pieces, int most) {
  return rc::gen::map(
      rc::gen::resize(
          most, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
                    rc::gen::elementOf(pieces)))),
      [](const std::vector<std::string>& some) {
        std::string joined;
        for (const std::string& piece : some) joined += piece;
        return joined;
      });
}

std::string WithSlashes(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) {
    joined += (joined.empty() ? "" : "/") + part;
  }
  return joined;
}

rc::Gen<std::string> Paths(const rc::Gen<std::string>& names) {
  return rc::gen::map(
      rc::gen::resize(5,
                      rc::gen::nonEmpty(
                          rc::gen::container<std::vector<std::string>>(names))),
      WithSlashes);
}

const std::vector<std::string> kLetters{"a", "b", "A", "B", ".", "x"};

std::string SomePattern() {
  const auto plain = Joined(kLetters, 3);
  const auto wild = Joined(
      {"a", "b", "A", ".x", "*", "?", "[ab]", "[!a]", "[A-Z]", "\\*", "\\a"},
      4);
  const std::string begin =
      *rc::gen::elementOf(std::vector<std::string>{"", "", "/", "**/"});
  const std::string end =
      *rc::gen::elementOf(std::vector<std::string>{"", "", "/", "/**"});
  return begin +
         *Paths(rc::gen::oneOf(plain, wild, wild,
                               rc::gen::just(std::string("**")))) +
         end;
}

/// A path that `pattern` may well match.
std::string Filled(std::string_view pattern) {
  std::string path;
  const auto one_of = [](const char* some) {
    return *rc::gen::elementOf(std::string(some));
  };
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == '*') {
      path += *Joined(kLetters, 2);
    } else if (c == '?') {
      path += one_of("abAx");
    } else if (c == '[') {
      path += one_of("abAB");
      at = pattern.find(']', at);
    } else if (c == '\\') {
      path += pattern[++at];
    } else {
      path += c;
    }
  }
  if (path.starts_with('/')) path.erase(0, 1);
  if (path.ends_with('/')) path += "b";
  return path;
}

/// One that has nothing to do with the rules, or that one of them is about.
std::string SomePath(const std::vector<Written>& rules) {
  std::vector<std::string> patterns;
  for (const Written& one : rules) {
    patterns.insert(patterns.end(), one.paths.begin(), one.paths.end());
  }
  const bool fill = !patterns.empty() && *rc::gen::inRange(0, 4) != 0;
  return fill ? Filled(*rc::gen::elementOf(patterns))
              : *Paths(Joined(kLetters, 3));
}

/// Adds patterns to `texts` and what they are parsed as to `globs`.
void AddPatterns(size_t count, bool nocase, std::vector<std::string>& texts,
                 std::vector<Glob>& globs) {
  while (texts.size() < count) {
    std::string text = SomePattern();
    auto glob = Glob::Parse(text, nocase);
    if (!glob) continue;  // "." is none, nor is "[!a]" at its beginning
    texts.push_back(std::move(text));
    globs.push_back(std::move(*glob));
  }
}

std::vector<Type> SomeTypes() {
  return *rc::gen::elementOf(std::vector<std::vector<Type>>{
      {}, {}, {Type::kSymlink}, {Type::kFile, Type::kOther}});
}

std::optional<Layer> SomeLayer() {
  return *rc::gen::elementOf(
      std::vector<std::optional<Layer>>{{}, {}, Layer::kBase, Layer::kNew});
}

Written SomeRule() {
  Written written;
  Rule& rule = written.rule;
  written.nocase = *rc::gen::arbitrary<bool>();
  rule.ops = *rc::gen::inRange<Mask>(1, kEverything + 1);
  rule.action = *rc::gen::element(Action::kAudit, Action::kDeny);
  rule.with_directory = *rc::gen::arbitrary<bool>();
  rule.when.layer = SomeLayer();
  rule.when.types = SomeTypes();
  AddPatterns(*rc::gen::inRange<size_t>(0, 3), written.nocase, written.paths,
              rule.when.paths);
  const size_t exceptions = *rc::gen::inRange<size_t>(0, 3);
  while (rule.unless.size() < exceptions) {
    Condition& unless = rule.unless.emplace_back();
    unless.layer = SomeLayer();
    unless.types = SomeTypes();
    AddPatterns(*rc::gen::inRange<size_t>(unless.layer ? 0 : 1, 3),
                written.nocase, written.exceptions.emplace_back(),
                unless.paths);
  }
  return written;
}

bool AnyMatches(const Written& written, const std::vector<std::string>& texts,
                std::string_view path) {
  return std::ranges::any_of(texts, [&](const std::string& text) {
    return ReferenceMatches(text, written.nocase, path);
  });
}

bool IsMeant(const Condition& condition, const Written& written,
             const std::vector<std::string>& texts, const Event& event) {
  return (!condition.layer || *condition.layer == event.layer) &&
         (condition.types.empty() ||
          std::ranges::count(condition.types, event.type) != 0) &&
         (texts.empty() || AnyMatches(written, texts, event.path));
}

bool IsAbout(const Written& written, const Event& event) {
  const Rule& rule = written.rule;
  if ((rule.ops & event.mask()) == 0) return false;
  if (!rule.with_directory && !event.other_end.empty()) {
    Event there = event;
    there.path = event.other_end;
    there.other_end = "";
    Event here = event;
    here.other_end = "";
    return IsAbout(written, here) && !IsAbout(written, there);
  }
  if (!IsMeant(rule.when, written, written.paths, event)) return false;
  for (size_t i = 0; i < rule.unless.size(); ++i) {
    if (IsMeant(rule.unless[i], written, written.exceptions[i], event)) {
      return false;
    }
  }
  return true;
}

/// The numbers of the rules about `event`, and of the one that decides.
std::pair<std::vector<size_t>, std::optional<size_t>> Naively(
    const std::vector<Written>& rules, const Event& event) {
  std::vector<size_t> about;
  std::optional<size_t> decides;
  for (size_t i = 0; i < rules.size(); ++i) {
    if (!IsAbout(rules[i], event)) continue;
    about.push_back(i);
    const Action action = rules[i].rule.action;
    if (!decides || action > rules[*decides].rule.action) decides = i;
  }
  return {about, decides};
}

TEST(PolicyPropertyTest, IsWhatALoopOverAllRulesSays) {
  EXPECT_TRUE(rc::check("same verdicts", [] {
    std::vector<Written> written(*rc::gen::inRange(0, 12));
    std::ranges::generate(written, SomeRule);
    std::vector<Rule> rules;
    for (const Written& one : written) rules.push_back(one.rule);
    const Policy policy(std::move(rules));
    for (int i = 0; i < 20; ++i) {
      const std::string path = SomePath(written);
      const std::string other_end =
          *rc::gen::inRange(0, 2) == 0 ? "" : SomePath(written);
      const Event event{
          .op = static_cast<Op>(*rc::gen::inRange<int>(0, kOps)),
          .effect = static_cast<Effect>(*rc::gen::inRange<int>(0, kEffects)),
          .path = path,
          .layer = *rc::gen::element(Layer::kBase, Layer::kNew),
          .type = static_cast<Type>(*rc::gen::inRange<int>(0, kTypes)),
          .other_end = other_end,
          .exe = {}};
      const auto [about, decides] = Naively(written, event);
      std::vector<size_t> matching;
      for (const Rule* rule : policy.Matching(event)) {
        matching.push_back(static_cast<size_t>(rule - policy.rules().data()));
      }
      RC_ASSERT(matching == about);
      const Verdict verdict = Evaluate(policy, event);
      RC_ASSERT(verdict.rule ==
                (decides ? &policy.rules()[*decides] : nullptr));
    }
  }));
}

}  // namespace
}  // namespace txfs::policy
