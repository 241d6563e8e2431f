#include "policy/glob.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

constexpr size_t kMaxParts = 62;

/// One element of a component's pattern, and where the next begins.
struct Element {
  enum class Kind { kByte, kAnyByte, kAnyRun, kSet } kind = Kind::kByte;
  char byte = 0;         ///< kByte
  std::string_view set;  ///< kSet: what is between the brackets
  size_t next = 0;
};

/// The `]` that ends the set which begins at `from` (behind `[`); npos: none. A
/// `]` that comes first is one of the set.
size_t EndOfSet(std::string_view pattern, size_t from) {
  size_t at = from;
  if (at < pattern.size() && pattern[at] == '!') ++at;
  if (at < pattern.size() && pattern[at] == ']') ++at;
  return pattern.find(']', at);
}

Element ElementAt(std::string_view pattern, size_t at) {
  const char c = pattern[at];
  switch (c) {
    case '*':
      return {.kind = Element::Kind::kAnyRun, .set = {}, .next = at + 1};
    case '?':
      return {.kind = Element::Kind::kAnyByte, .set = {}, .next = at + 1};
    case '[': {
      const size_t end = EndOfSet(pattern, at + 1);
      return {.kind = Element::Kind::kSet,
              .set = pattern.substr(at + 1, end - at - 1),
              .next = end + 1};
    }
    case '\\':
      return {.byte = pattern[at + 1], .set = {}, .next = at + 2};
    default:
      return {.byte = c, .set = {}, .next = at + 1};
  }
}

bool IsInSet(std::string_view set, char c) {
  const auto byte = static_cast<unsigned char>(c);
  bool found = false;
  for (size_t i = 0; i < set.size() && !found; ++i) {
    const auto first = static_cast<unsigned char>(set[i]);
    auto last = first;
    if (i + 2 < set.size() && set[i + 1] == '-') {
      last = static_cast<unsigned char>(set[i + 2]);
      i += 2;
    }
    found = first <= byte && byte <= last;
  }
  return found;
}

bool MatchesOne(const Element& element, char c, bool nocase) {
  switch (element.kind) {
    case Element::Kind::kByte:
      return nocase ? ToLower(element.byte) == ToLower(c) : element.byte == c;
    case Element::Kind::kSet: {
      std::string_view set = element.set;
      const bool negated = set.starts_with('!');
      if (negated) set.remove_prefix(1);
      const bool found =
          IsInSet(set, c) ||
          (nocase && (IsInSet(set, ToLower(c)) || IsInSet(set, ToUpper(c))));
      return found != negated;
    }
    default:
      return true;
  }
}

/// Only the last `*` is ever taken back: what an earlier one could do, it can.
bool MatchesPattern(std::string_view pattern, std::string_view name,
                    bool nocase) {
  size_t at = 0;
  size_t in_name = 0;
  std::optional<size_t> star;  // behind it, in the pattern
  size_t taken = 0;            // up to here in the name
  while (in_name < name.size()) {
    if (at < pattern.size()) {
      const Element element = ElementAt(pattern, at);
      if (element.kind == Element::Kind::kAnyRun) {
        star = at = element.next;
        taken = in_name;
        continue;
      }
      if (MatchesOne(element, name[in_name], nocase)) {
        at = element.next;
        ++in_name;
        continue;
      }
    }
    if (!star) return false;
    at = *star;
    in_name = ++taken;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

/// Why `set` is none, or means something else in .gitignore; "" when it is one.
std::string_view FlawInSet(std::string_view set) {
  if (set.starts_with('^')) return "use ! to negate a set, not ^";
  if (set.contains("[:"))
    return "it has a character class; list the characters instead";
  if (set.contains('\\')) return "it has a \\ in a set";
  const bool plain = std::ranges::all_of(
      set, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!plain) return "a set has a character that is not ASCII";
  for (size_t i = set.starts_with('!') ? 1 : 0; i + 2 < set.size(); ++i) {
    if (set[i + 1] != '-') continue;
    if (set[i] > set[i + 2]) return "a range ends before it begins";
    i += 2;
  }
  return "";
}

/// Why `pattern` is no component; "" when it is one.
std::string_view FlawIn(std::string_view pattern) {
  if (pattern == "." || pattern == "..") return "no file has the name . or ..";
  if (pattern.contains('\0')) return "it has a NUL byte";
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '\\' && at + 1 == pattern.size()) {
      return "nothing follows the \\ at its end";
    }
    if (pattern[at] == '[' && EndOfSet(pattern, at + 1) == pattern.npos) {
      return "a [ has no ]";
    }
    const Element element = ElementAt(pattern, at);
    if (element.kind == Element::Kind::kSet) {
      const std::string_view flaw = FlawInSet(element.set);
      if (!flaw.empty()) return flaw;
    }
    at = element.next;
  }
  return "";
}

bool IsLiteral(std::string_view pattern) {
  return pattern.find_first_of("*?[\\") == pattern.npos;
}

/// The runs of bytes in a pattern of which each is known.
class Runs {
 public:
  /// What was known of the name above stands right before this one.
  void BeginName() {
    if (run_.empty()) run_ = "/";
  }
  void Add(char c) { run_ += ToLower(c); }
  void End() {
    if (run_.size() > kMax) run_.erase(0, run_.size() - kMax);
    if (!run_.empty() && run_ != "/") list_.push_back(std::move(run_));
    run_.clear();
  }
  [[nodiscard]] std::vector<std::string> list() && { return std::move(list_); }

 private:
  /// So that tables stay small.
  static constexpr size_t kMax = 32;
  std::string run_;
  std::vector<std::string> list_;
};

std::string_view LastName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::string_view TakeName(std::string_view& path) {
  const size_t slash = std::min(path.find('/'), path.size());
  const std::string_view name = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return name;
}

}  // namespace

Result<Glob> Glob::Parse(std::string_view pattern, bool nocase) {
  const auto flawed = [&](std::string_view why) {
    return Fail(EINVAL, "pattern \"" + std::string(pattern) +
                            "\": " + std::string(why));
  };
  if (pattern.starts_with('!')) {
    return flawed(
        "use `unless` for exceptions; write \\! for a name that begins with !");
  }
  std::string_view rest = pattern;
  Glob glob;
  glob.nocase_ = nocase;
  glob.takes_below_ = rest.ends_with('/');
  if (glob.takes_below_) rest.remove_suffix(1);
  if (rest.ends_with('/')) return flawed("two slashes follow each other");
  const bool anchored = rest.contains('/');
  if (rest.starts_with('/')) rest.remove_prefix(1);
  if (rest.empty()) return flawed("it is empty");
  if (!anchored && rest != "**") {
    glob.parts_.push_back({.kind = Part::Kind::kAnyDepth, .text = {}});
  }
  while (!rest.empty()) {
    const std::string_view name = TakeName(rest);
    if (name.empty()) return flawed("two slashes follow each other");
    if (name == "**") {
      const bool again = !glob.parts_.empty() &&
                         glob.parts_.back().kind == Part::Kind::kAnyDepth;
      if (!again)
        glob.parts_.push_back({.kind = Part::Kind::kAnyDepth, .text = {}});
      continue;
    }
    const std::string_view flaw = FlawIn(name);
    if (!flaw.empty()) return flawed(flaw);
    Part part{
        .kind = IsLiteral(name) ? Part::Kind::kLiteral : Part::Kind::kPattern,
        .text = std::string(name)};
    if (nocase && part.kind == Part::Kind::kLiteral) {
      part.text = Lowered(part.text);
    }
    glob.parts_.push_back(std::move(part));
  }
  if (glob.parts_.size() > kMaxParts) return flawed("it has too many parts");
  return glob;
}

bool Glob::MatchesName(const Part& part, std::string_view name) const {
  if (part.kind == Part::Kind::kPattern) {
    return MatchesPattern(part.text, name, nocase_);
  }
  if (!nocase_) return part.text == name;
  return std::ranges::equal(part.text, name, {}, {}, ToLower);
}

/// `**` in the middle may be nothing.
Glob::States Glob::Skip(States states) const {
  for (size_t i = 0; i + 1 < parts_.size(); ++i) {
    const bool here = (states >> i & 1) != 0;
    if (here && parts_[i].kind == Part::Kind::kAnyDepth) {
      states |= States{1} << (i + 1);
    }
  }
  return states;
}

Glob::States Glob::Consume(States states, std::string_view name) const {
  States after = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if ((states >> i & 1) == 0) continue;
    if (parts_[i].kind == Part::Kind::kAnyDepth) {
      after |= States{1} << i;
      if (i + 1 == parts_.size()) after |= End();
    } else if (MatchesName(parts_[i], name)) {
      after |= States{1} << (i + 1);
    }
  }
  if (takes_below_) after |= states & End();
  return Skip(after);
}

Glob::States Glob::Walk(std::string_view path) const {
  States states = Skip(1);
  while (!path.empty() && states != 0) {
    states = Consume(states, TakeName(path));
  }
  return states;
}

bool Glob::Matches(std::string_view path) const {
  if (path.empty()) return false;
  const Part& last = parts_.back();
  if (!takes_below_ && last.kind != Part::Kind::kAnyDepth) {
    // Most patterns, and nearly all paths, need no walk.
    if (!MatchesName(last, LastName(path))) return false;
    if (parts_.size() == 2 && parts_[0].kind == Part::Kind::kAnyDepth) {
      return true;
    }
  }
  return (Walk(path) & End()) != 0;
}

bool Glob::MayMatchBelow(std::string_view path) const {
  const States states = Walk(path);
  return (states & ~End()) != 0 || (takes_below_ && (states & End()) != 0);
}

std::vector<std::string> Glob::Needles() const {
  Runs runs;
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Part::Kind::kAnyDepth:
        runs.End();
        break;
      case Part::Kind::kLiteral:
        runs.BeginName();
        for (const char c : part.text) runs.Add(c);
        runs.Add('/');
        break;
      case Part::Kind::kPattern:
        runs.BeginName();
        for (size_t at = 0; at < part.text.size();) {
          const Element element = ElementAt(part.text, at);
          if (element.kind == Element::Kind::kByte) {
            runs.Add(element.byte);
          } else {
            runs.End();
          }
          at = element.next;
        }
        runs.Add('/');
        break;
    }
  }
  runs.End();
  return std::move(runs).list();
}

}  // namespace txfs::policy
