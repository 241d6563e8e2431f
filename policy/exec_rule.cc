#include "policy/exec_rule.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

bool IsBlank(char c) { return kBlanks.contains(c); }

/// With each run of white space as one blank.
std::string Squeezed(std::string_view text) {
  std::string squeezed;
  for (const char c : text) {
    const bool blank = IsBlank(c);
    if (blank && squeezed.ends_with(' ')) continue;
    squeezed += blank ? ' ' : c;
  }
  return squeezed;
}

/// The element of a pattern at `at`, which matches one byte: the number of
/// bytes of it, and whether it matches `c`.
struct TextElement {
  size_t size = 1;
  bool matches = false;
};

char Folded(char c, bool nocase) { return nocase ? ToLower(c) : c; }

TextElement MatchTextSet(std::string_view set, char c, bool nocase) {
  const bool negated = set[1] == '!';
  size_t i = negated ? 2 : 1;
  bool found = false;
  const char wanted = Folded(c, nocase);
  // A "]" at the begin is one of the set.
  for (const size_t begin = i; i < set.size() && (set[i] != ']' || i == begin);
       ++i) {
    const char low = Folded(set[i], nocase);
    char high = low;
    if (i + 2 < set.size() && set[i + 1] == '-' && set[i + 2] != ']') {
      high = Folded(set[i + 2], nocase);
      i += 2;
    }
    found = found || (low <= wanted && wanted <= high);
  }
  return {.size = i + 1, .matches = found != negated};
}

TextElement MatchTextElement(std::string_view pattern, char c, bool nocase) {
  switch (pattern[0]) {
    case '?':
      return {.size = 1, .matches = true};
    case '[':
      return MatchTextSet(pattern, c, nocase);
    case '\\':
      return {.size = 2,
              .matches = Folded(pattern[1], nocase) == Folded(c, nocase)};
    default:
      return {.size = 1,
              .matches = Folded(pattern[0], nocase) == Folded(c, nocase)};
  }
}

bool MatchText(std::string_view pattern, std::string_view text, bool nocase) {
  size_t p = 0;
  size_t t = 0;
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size()) {
      const TextElement element =
          MatchTextElement(pattern.substr(p), text[t], nocase);
      if (element.matches) {
        p += element.size;
        ++t;
        continue;
      }
    }
    if (star == std::string_view::npos) return false;
    // The last star takes one byte more.
    p = star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool IsOption(std::string_view text) {
  return text.size() > 1 && text.starts_with('-');
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Whether an abbreviation of a long option counts: in an exception it does
/// not.
enum class Abbreviated { kCounts, kDoesNot };

/// Whether the argument `text` is the option `option`: in a cluster of short
/// ones, with a value, or abbreviated.
bool IsThatOption(std::string_view option, std::string_view text,
                  Abbreviated abbreviated) {
  if (option.starts_with("--")) {
    const std::string_view name = text.substr(0, text.find('='));
    if (name == option) return true;
    return abbreviated == Abbreviated::kCounts && name.size() > 3 &&
           name.starts_with("--") && option.starts_with(name);
  }
  if (option.size() != 2 || !IsLetter(option[1]) || text.starts_with("--")) {
    return text.substr(0, text.find('=')) == option;
  }
  return text.starts_with('-') && text.substr(1).contains(option[1]) &&
         std::ranges::all_of(text.substr(1), IsLetter);
}

/// The arguments of a command, and the views that conditions have of them.
class Arguments {
 public:
  explicit Arguments(const Command& command) : words_(command.arguments) {
    const auto end = std::ranges::find_if(
        words_, [](const Word& w) { return w.text == "--"; });
    options_end_ = static_cast<size_t>(end - words_.begin());
  }

  [[nodiscard]] bool Has(const TextPattern& pattern, bool nocase,
                         Abbreviated abbreviated) const {
    const std::string_view wanted = pattern.text();
    if (wanted == "--") return options_end_ < words_.size();
    const bool is_option = IsOption(wanted);
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::string& text = words_[i].text;
      if (is_option && (i >= options_end_ || !text.starts_with('-'))) continue;
      if (pattern.Matches(text, nocase)) return true;
      if (is_option && pattern.is_literal() && !wanted.contains('=') &&
          IsThatOption(wanted, text, abbreviated)) {
        return true;
      }
    }
    return false;
  }

  /// Whether the words of `subcommand` are the first ones, without options. The
  /// word behind an option may be its value, or no value: both count.
  [[nodiscard]] bool Begin(const std::vector<TextPattern>& subcommand) const {
    return BeginAt(0, subcommand);
  }

  /// The number of the argument behind a subcommand of `words` words: what is
  /// before it is no operand.
  [[nodiscard]] bool IsOperand(size_t argument) const {
    return argument > options_end_ || !IsOption(words_[argument].text);
  }

 private:
  [[nodiscard]] bool BeginAt(size_t at,
                             std::span<const TextPattern> wanted) const {
    if (wanted.empty()) return true;
    bool behind_option = false;
    for (size_t i = at; i < words_.size(); ++i) {
      const std::string& text = words_[i].text;
      if (IsOption(text)) {
        behind_option = !text.contains('=');
        continue;
      }
      if (wanted[0].Matches(text) && BeginAt(i + 1, wanted.subspan(1))) {
        return true;
      }
      // A value of the option before it, perhaps.
      if (!behind_option) return false;
      behind_option = false;
    }
    return false;
  }

  const std::vector<Word>& words_;
  size_t options_end_ = 0;
};

/// Whether a condition is one for a rule, or for an exception from it.
enum class Use { kWhen, kUnless };

class Matcher {
 public:
  Matcher(const ExecCondition& condition, const Command& command,
          const Surroundings& surroundings, bool nocase, Use part)
      : condition_(condition),
        command_(command),
        surroundings_(surroundings),
        arguments_(command),
        nocase_(nocase),
        part_(part) {}

  [[nodiscard]] bool Matches() const {
    return MatchesProgram() && MatchesWords() && MatchesText() &&
           MatchesPaths() && MatchesReads() && MatchesFeeders() &&
           MatchesEnvironment() && MatchesRest();
  }

 private:
  [[nodiscard]] bool MatchesProgram() const {
    if (condition_.programs.empty()) return true;
    const std::string& program = command_.program.text;
    if (!command_.program.known || program.empty()) return false;
    return std::ranges::any_of(
        condition_.programs, [&](const TextPattern& pattern) {
          return pattern.Matches(pattern.text().contains('/')
                                     ? std::string_view(program)
                                     : BaseName(program));
        });
  }

  [[nodiscard]] bool Has(const TextPattern& pattern) const {
    return arguments_.Has(
        pattern, nocase_,
        part_ == Use::kWhen ? Abbreviated::kCounts : Abbreviated::kDoesNot);
  }

  [[nodiscard]] bool HasAnyOf(const std::vector<TextPattern>& some) const {
    return std::ranges::any_of(
        some, [&](const TextPattern& one) { return Has(one); });
  }

  [[nodiscard]] bool MatchesWords() const {
    if (!condition_.subcommands.empty() &&
        std::ranges::none_of(condition_.subcommands, [&](const auto& words) {
          return arguments_.Begin(words);
        })) {
      return false;
    }
    if (!condition_.any_arg.empty() && !HasAnyOf(condition_.any_arg)) {
      return false;
    }
    return std::ranges::all_of(
        condition_.all_args, [&](const auto& some) { return HasAnyOf(some); });
  }

  [[nodiscard]] bool MatchesText() const {
    if (condition_.text.empty()) return true;
    const std::string input = Squeezed(command_.input);
    return std::ranges::any_of(
        condition_.text, [&](const TextPattern& pattern) {
          return pattern.Matches(input, nocase_) ||
                 std::ranges::any_of(command_.arguments, [&](const Word& word) {
                   return pattern.Matches(Squeezed(word.text), nocase_);
                 });
        });
  }

  [[nodiscard]] bool IsOneOf(const std::vector<ExecCondition::Path>& patterns,
                             const PathArgument& path) const {
    const std::string_view text = path.path;
    return std::ranges::any_of(
        patterns, [&](const ExecCondition::Path& pattern) {
          if (!pattern.below_home) {
            return pattern.glob.Matches(text.starts_with('/') ? text.substr(1)
                                                              : text);
          }
          const auto below = BelowHome(text, surroundings_);
          return below && !below->empty() && pattern.glob.Matches(*below);
        });
  }

  [[nodiscard]] bool IsThatPath(const PathArgument& path) const {
    return (condition_.regions == 0 ||
            (condition_.regions & MaskOf(path.region)) != 0) &&
           (condition_.paths.empty() || IsOneOf(condition_.paths, path));
  }

  /// The paths that the condition is about. Values of options count only where
  /// any operand does.
  [[nodiscard]] std::vector<const PathArgument*> Operands() const {
    std::vector<const PathArgument*> operands;
    for (const PathArgument& path : command_.paths) {
      const bool counts =
          arguments_.IsOperand(path.argument) ||
          (part_ == Use::kWhen && condition_.operand == Operand::kAny);
      if (counts) operands.push_back(&path);
    }
    if (operands.empty()) return operands;
    if (condition_.operand == Operand::kFirst) return {operands.front()};
    if (condition_.operand == Operand::kLast) return {operands.back()};
    return operands;
  }

  [[nodiscard]] bool MatchesPaths() const {
    if (condition_.regions == 0 && condition_.paths.empty()) return true;
    const auto operands = Operands();
    const auto is_that = [&](const PathArgument* path) {
      return IsThatPath(*path);
    };
    if (part_ == Use::kWhen) return std::ranges::any_of(operands, is_that);
    // An exception is one for all that the command is about.
    return !operands.empty() && std::ranges::all_of(operands, is_that);
  }

  /// A key or a certificate that only proves who connects.
  [[nodiscard]] bool OnlyProves(const PathArgument& path) const {
    constexpr std::array<std::string_view, 9> kProofs{
        "-i",       "--cert", "--key",           "--cacert",     "-E",
        "--capath", "-F",     "--identity_file", "--private-key"};
    if (path.argument == 0 || path.argument >= command_.arguments.size()) {
      return false;
    }
    const std::string_view before = command_.arguments[path.argument - 1].text;
    // -F of curl is a part of a form: "name=@file".
    const std::string_view text = command_.arguments[path.argument].text;
    return std::ranges::find(kProofs, before) != kProofs.end() &&
           !text.contains('@');
  }

  [[nodiscard]] bool MatchesReads() const {
    if (condition_.reads.empty()) return true;
    const auto is_that = [&](const PathArgument& path) {
      return IsOneOf(condition_.reads, path) && !OnlyProves(path);
    };
    return std::ranges::any_of(command_.reads, is_that) ||
           std::ranges::any_of(command_.paths, is_that);
  }

  [[nodiscard]] bool MatchesFeeders() const {
    if (condition_.fed_by.empty()) return true;
    return std::ranges::any_of(
        condition_.fed_by, [&](const TextPattern& pattern) {
          return std::ranges::any_of(
              command_.fed_by, [&](const std::string& feeder) {
                return pattern.Matches(feeder) ||
                       pattern.Matches(feeder.substr(0, feeder.find(' ')));
              });
        });
  }

  [[nodiscard]] bool MatchesEnvironment() const {
    if (condition_.env.empty()) return true;
    return std::ranges::any_of(condition_.env, [&](const TextPattern& pattern) {
      return std::ranges::any_of(
          command_.environment, [&](const std::string& set) {
            return pattern.Matches(
                pattern.text().contains('=')
                    ? std::string_view(set)
                    : std::string_view(set).substr(0, set.find('=')));
          });
    });
  }

  [[nodiscard]] bool MatchesRest() const {
    if (condition_.remote && *condition_.remote != command_.remote) {
      return false;
    }
    if (condition_.operands) {
      bool any = false;
      for (size_t i = 0; i < command_.arguments.size(); ++i) {
        any = any ||
              (command_.arguments[i].text != "--" && arguments_.IsOperand(i));
      }
      if (any != *condition_.operands) return false;
    }
    return condition_.scripts.empty() ||
           std::ranges::find(condition_.scripts, command_.script) !=
               condition_.scripts.end();
  }

  const ExecCondition& condition_;
  const Command& command_;
  const Surroundings& surroundings_;
  const Arguments arguments_;
  const bool nocase_;
  const Use part_;
};

constexpr std::array<std::string_view, 3> kConfinements{"none", "mount", "run"};

}  // namespace

Result<TextPattern> TextPattern::Parse(std::string_view pattern) {
  TextPattern parsed;
  if (pattern.empty()) return Fail(EINVAL, "it is empty");
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      if (++i == pattern.size()) return Fail(EINVAL, "it ends in a backslash");
      // So that a literal is compared as it is.
      parsed.literal_ = false;
      continue;
    }
    if (pattern[i] == '[') {
      const size_t first = i + (pattern.substr(i).starts_with("[!") ? 2 : 1);
      // The first character may be "]".
      const size_t end = first + 1 < pattern.size()
                             ? pattern.find(']', first + 1)
                             : std::string_view::npos;
      if (end == std::string_view::npos) {
        return Fail(EINVAL, "a [ has no ]");
      }
      i = end;
      parsed.literal_ = false;
    }
    if (pattern[i] == '*' || pattern[i] == '?') parsed.literal_ = false;
  }
  parsed.text_ = pattern;
  return parsed;
}

bool TextPattern::Matches(std::string_view text, bool nocase) const {
  return MatchText(text_, text, nocase);
}

bool ExecCondition::empty() const {
  return programs.empty() && subcommands.empty() && any_arg.empty() &&
         all_args.empty() && text.empty() && paths.empty() && regions == 0 &&
         reads.empty() && fed_by.empty() && env.empty() && scripts.empty() &&
         !remote && !operands;
}

bool Matches(const ExecRule& rule, const Command& command,
             const Surroundings& surroundings) {
  const auto matches = [&](const ExecCondition& condition, Use part) {
    return Matcher(condition, command, surroundings, rule.nocase, part)
        .Matches();
  };
  return matches(rule.when, Use::kWhen) &&
         std::ranges::none_of(rule.unless, [&](const ExecCondition& unless) {
           return matches(unless, Use::kUnless);
         });
}

std::string_view NameOf(Confinement confinement) {
  return kConfinements.at(static_cast<size_t>(confinement));
}

Action Soften(Action action, Class consequence, Confinement confinement) {
  const bool is_kept = confinement == Confinement::kRun
                           ? consequence != Class::kIrreversible
                           : confinement == Confinement::kMount &&
                                 consequence == Class::kUndoable;
  // What is only noted is noted anywhere.
  return is_kept && action > Action::kAudit ? Action::kAllow : action;
}

std::optional<std::vector<Word>> SimpleWords(std::string_view text) {
  constexpr std::string_view kSyntax = "|&;<>()$`\\\"'*?[#~{}!\n";
  std::vector<Word> words;
  std::optional<Word> word;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\t') {
      if (word) words.push_back(KnownWord(std::move(word->text)));
      word.reset();
      continue;
    }
    if (!word) word.emplace();
    if (c == '\'' || c == '"') {
      const size_t end = text.find(c, i + 1);
      if (end == std::string_view::npos) return std::nullopt;
      const std::string_view inside = text.substr(i + 1, end - i - 1);
      if (c == '"' && inside.find_first_of("$`\\!") != std::string_view::npos) {
        return std::nullopt;
      }
      word->text += inside;
      i = end;
      continue;
    }
    // A home is no syntax that matters where it stands alone.
    const bool is_home =
        c == '~' && word->text.empty() &&
        (i + 1 == text.size() || text[i + 1] == '/' || text[i + 1] == ' ');
    if (is_home) {
      word->text += ExampleSurroundings().home;
      continue;
    }
    if (kSyntax.contains(c)) return std::nullopt;
    word->text += c;
  }
  if (word) words.push_back(KnownWord(std::move(word->text)));
  const bool assigns = !words.empty() && words[0].text.contains('=');
  if (words.empty() || assigns) return std::nullopt;
  return words;
}

const Surroundings& ExampleSurroundings() {
  static const Surroundings kSurroundings{.workspace = "/home/user/project",
                                          .home = "/home/user",
                                          .temporary = "",
                                          .is_workspace = true};
  return kSurroundings;
}

}  // namespace txfs::policy
