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

/// Whether an argument counts that may be the option, or may be another one: in
/// an exception it does not.
enum class InDoubt { kCounts, kDoesNot };

/// More letters are a name: "-Pcentral".
constexpr size_t kMaxCluster = 6;

bool IsNegative(std::string_view value) {
  constexpr auto kNegative = std::to_array<std::string_view>(
      {"false", "none", "no", "off", "0", "never"});
  return std::ranges::find(kNegative, value) != kNegative.end();
}

/// Whether `text` has the letter among its short options.
bool HasLetter(char letter, std::string_view text, InDoubt in_doubt) {
  const std::string_view letters = text.substr(1);
  if (!letters.contains(letter)) return false;
  if (in_doubt == InDoubt::kCounts) {
    return std::ranges::all_of(letters, IsLetter);
  }
  return letters.size() < kMaxCluster && std::ranges::all_of(letters, IsLetter);
}

/// Whether the argument `text` is the option `option`: in a cluster of short
/// ones, with a value, or abbreviated. A value in `option` must be the same.
bool IsThatOption(std::string_view option, std::string_view text,
                  InDoubt in_doubt) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (const size_t value = option.find('='); value != std::string_view::npos) {
    return in_doubt == InDoubt::kCounts && name.size() > 3 &&
           name.starts_with("--") && option.starts_with(name) &&
           equals != std::string_view::npos &&
           option.substr(value) == text.substr(equals);
  }
  if (option.starts_with("--")) {
    if (name == option) {
      return in_doubt == InDoubt::kCounts || equals == std::string_view::npos ||
             !IsNegative(text.substr(equals + 1));
    }
    return in_doubt == InDoubt::kCounts && name.size() > 3 &&
           name.starts_with("--") && option.starts_with(name);
  }
  if (option.size() != 2 || !IsLetter(option[1]) || text.starts_with("--")) {
    return name == option;
  }
  return text.starts_with('-') && HasLetter(option[1], text, in_doubt);
}

template <size_t size>
bool IsIn(const std::array<std::string_view, size>& list,
          std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

/// Options of most tools with a command line of nouns and verbs whose next word
/// is their value.
bool TakesValue(std::string_view option) {
  constexpr std::string_view kOptions =
      " -n --namespace --context --cluster --profile --region "
      "--project --kubeconfig --zone --app --subscription "
      "--kube-context -a --name --host --hostname -h --port -p --user "
      "-u --config --server -s --token -C --chdir --account --org "
      "--team --scope --repo -R -H --stack --env --stage -c -g "
      "--resource-group -o --output --database --path ";
  return kOptions.contains(" " + std::string(option) + " ");
}

/// Options that have no value with any tool.
bool IsFlag(std::string_view option) {
  constexpr auto kFlags = std::to_array<std::string_view>(
      {"--verbose", "--quiet", "--debug", "--yes", "--force", "--dry-run",
       "--all", "--recursive", "--json", "--silent", "--assume-yes",
       "--non-interactive", "--noconfirm", "--no-prompt", "--user", "--global",
       "--system", "--local"});
  if (option.starts_with("--")) {
    return option.starts_with("--no-") || IsIn(kFlags, option);
  }
  return option.substr(1).find_first_not_of("qyvdfimt") ==
         std::string_view::npos;
}

/// A verb of a tool that deletes or sends nothing: what follows it are names.
bool EndsVerbs(std::string_view text) {
  constexpr auto kPrefixes = std::to_array<std::string_view>(
      {"get-",    "list-",   "describe-", "show-",   "search-",
       "view-",   "query-",  "head-",     "filter-", "create-",
       "put-",    "start-",  "generate-", "test-",   "check-",
       "assume-", "lookup-", "wait-",     "update-", "tag-"});
  constexpr auto kWords = std::to_array<std::string_view>(
      {"get",     "list",    "ls",       "describe", "show",    "status",
       "can-i",   "read",    "search",   "info",     "view",    "diff",
       "explain", "inspect", "version",  "help",     "output",  "template",
       "history", "top",     "query",    "scan",     "lookup",  "select",
       "create",  "check",   "validate", "invoke",   "install", "build",
       "upgrade", "cat",     "print",    "find",     "new",     "events"});
  constexpr auto kSuffixes =
      std::to_array<std::string_view>({":get", ":list", ":info", ":create"});
  return IsIn(kWords, text) ||
         std::ranges::any_of(kPrefixes,
                             [&](std::string_view prefix) {
                               return text.starts_with(prefix);
                             }) ||
         std::ranges::any_of(kSuffixes, [&](std::string_view suffix) {
           return text.ends_with(suffix);
         });
}

/// Nouns before a verb, and the verb: "gcloud beta compute instances delete".
constexpr size_t kMaxVerbDepth = 6;

/// Whether `condition` of SQL, without an "or", is one that all rows meet.
bool IsTautology(std::string_view condition) {
  std::string bare;
  for (const char c : condition) {
    if (!IsBlank(c) && c != '(' && c != ')') bare += c;
  }
  const std::string_view text = bare;
  const size_t equals = text.find('=');
  constexpr auto kTrue = std::to_array<std::string_view>(
      {"true", "1", "notfalse", "not0", "''", "idisnotnull"});
  return IsIn(kTrue, text) ||
         (equals != std::string_view::npos && equals > 0 &&
          text.substr(0, equals) == text.substr(equals + 1));
}

/// `statement` without a condition that all rows meet: `where true`, `where
/// a = 2 or 1 = 1`.
std::string WithoutTautology(std::string statement) {
  std::string lower = statement;
  std::ranges::transform(lower, lower.begin(), ToLower);
  const size_t where = lower.rfind(" where ");
  if (where == std::string::npos) return statement;
  for (size_t at = where + 7; at < lower.size();) {
    const size_t end = std::min(lower.find(" or ", at), lower.size());
    if (IsTautology(std::string_view(lower).substr(at, end - at))) {
      statement.resize(where);
      break;
    }
    at = end + 4;
  }
  return statement;
}

/// The statements in `text`, without comments and literals.
void AddStatements(std::string_view text,
                   std::vector<std::string>& statements) {
  std::string one;
  const auto flush = [&]() {
    if (!one.empty()) statements.push_back(WithoutTautology(Squeezed(one)));
    one.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (text[i] == '\'') {
      // Two of them are one in the literal, and so two literals.
      const size_t end = text.find('\'', i + 1);
      if (end == std::string_view::npos) break;
      i = end;
      one += "''";
    } else if (rest.starts_with("--") || rest.starts_with("/*")) {
      const std::string_view close = rest.starts_with("--") ? "\n" : "*/";
      const size_t end = text.find(close, i + 2);
      if (end == std::string_view::npos) break;
      i = end + close.size() - 1;
      one += ' ';
    } else if (text[i] == ';') {
      flush();
    } else {
      one += text[i];
    }
  }
  flush();
}

std::vector<std::string> StatementsOf(const Command& command) {
  std::vector<std::string> statements;
  AddStatements(command.input, statements);
  for (const Word& word : command.arguments) {
    // Not the "--" of "--command=", which would begin a comment.
    const size_t equals = word.text.find('=');
    const bool is_option =
        word.text.starts_with("--") && equals != std::string::npos;
    AddStatements(
        std::string_view(word.text).substr(is_option ? equals + 1 : 0),
        statements);
  }
  return statements;
}

/// Whether nothing but the directories of the system and the names of programs
/// says what runs, so that it is the program that its name says.
bool IsPlain(const Command& command) {
  constexpr auto kHarmless = std::to_array<std::string_view>(
      {"LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "IFS",
       "CLICOLOR", "FORCE_COLOR", "PWD", "OLDPWD", "HOME", "TMPDIR", "USER"});
  const std::string_view program = command.program.text;
  const size_t slash = program.rfind('/');
  if (slash != std::string_view::npos) {
    const std::string_view directory = program.substr(0, slash);
    if (directory != "/bin" && directory != "/usr/bin") return false;
  }
  return std::ranges::all_of(command.environment, [&](const auto& set) {
    const std::string_view name =
        std::string_view(set).substr(0, set.find('='));
    return IsIn(kHarmless, name) || name.starts_with("LC_");
  });
}

/// The arguments of a command, and the views that conditions have of them.
class Arguments {
 public:
  explicit Arguments(const Command& command) : words_(command.arguments) {
    const auto end = std::ranges::find_if(
        words_, [](const Word& w) { return w.text == "--"; });
    options_end_ = static_cast<size_t>(end - words_.begin());
    // The directory of `git -C DIR`, which is no -C of its subcommands.
    if (BaseName(command.program.text) != "git") return;
    while (directories_end_ < words_.size() &&
           words_[directories_end_].text == "-C") {
      directories_end_ += 2;
    }
  }

  [[nodiscard]] bool Has(const TextPattern& pattern, bool nocase,
                         InDoubt in_doubt) const {
    const std::string_view wanted = pattern.text();
    if (wanted == "--") return options_end_ < words_.size();
    const bool is_option = IsOption(wanted);
    const bool is_sure = in_doubt == InDoubt::kDoesNot;
    if (is_sure && is_option && IsTakenBack(wanted)) return false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const std::string& text = words_[i].text;
      if (is_option && (i >= options_end_ || !text.starts_with('-'))) continue;
      if (i < directories_end_ && wanted == "-C") continue;
      if (is_sure && !is_option && !IsSureOperand(pattern, i)) continue;
      if (pattern.Matches(text, nocase)) return true;
      // "--option VALUE", of "--option=VALUE".
      if (is_option && i + 1 < words_.size() && wanted.size() > text.size() &&
          wanted[text.size()] == '=' && wanted.starts_with(text) &&
          pattern.Matches(text + "=" + words_[i + 1].text, nocase)) {
        return true;
      }
      if (is_option && pattern.is_literal() &&
          IsThatOption(wanted, text, in_doubt)) {
        return true;
      }
    }
    return false;
  }

  /// Whether the words of `subcommand` are the first ones, without options. The
  /// word behind an option may be its value, or no value: both count.
  [[nodiscard]] bool Begin(const std::vector<TextPattern>& subcommand,
                           bool nocase) const {
    return BeginAt(0, subcommand, nocase);
  }

  /// Whether one of the first operands is a verb of these. What follows a verb
  /// that only reads, or an option, is a name.
  [[nodiscard]] bool HasVerb(const std::vector<TextPattern>& verbs,
                             const std::vector<TextPattern>& ends,
                             bool nocase) const {
    const auto is_one_of = [&](const std::vector<TextPattern>& some,
                               std::string_view text) {
      return std::ranges::any_of(some, [&](const TextPattern& one) {
        return one.Matches(text, nocase);
      });
    };
    size_t depth = 0;
    std::string_view option;
    for (size_t i = 0; i < options_end_ && depth < kMaxVerbDepth; ++i) {
      const std::string_view text = words_[i].text;
      if (IsOption(text)) {
        option = text.contains('=') ? "" : text;
        continue;
      }
      const bool may_be_value = !option.empty() && !IsFlag(option);
      const bool is_value = may_be_value && (depth > 0 || TakesValue(option));
      option = "";
      if (is_value) continue;
      if (is_one_of(verbs, text)) return true;
      if (may_be_value) continue;
      if (EndsVerbs(text) || is_one_of(ends, text)) return false;
      ++depth;
    }
    return false;
  }

  /// `argument`: a number, or that of none.
  [[nodiscard]] bool IsOperand(size_t argument) const {
    return argument >= words_.size() || argument > options_end_ ||
           !IsOption(words_[argument].text);
  }

 private:
  /// Whether "--no-X" stands beside "--X".
  [[nodiscard]] bool IsTakenBack(std::string_view option) const {
    const size_t dashes = option.starts_with("--") ? 2 : 1;
    const std::string negated =
        option == "-n" ? "--no-dry-run"
                       : "--no-" + std::string(option.substr(dashes));
    return std::ranges::find(words_, negated, &Word::text) != words_.end();
  }

  /// Whether the argument at `i` may be the word that an exception names: no
  /// value of an option, and no text that has it somewhere.
  [[nodiscard]] bool IsSureOperand(const TextPattern& pattern, size_t i) const {
    const std::string_view told = pattern.text();
    const Word& word = words_[i];
    if (!pattern.is_literal()) {
      constexpr auto kOthers = std::to_array<std::string_view>(
          {"-x", "--proxy", "--preproxy", "-e", "--referer", "-o", "--output",
           "-d", "--data", "-H", "--header", "-A", "--connect-to",
           "--cache-from", "--build-arg", "-v", "--variable"});
      // Of a request to a host, another host.
      const bool is_host = told.contains("localhost") || told.contains("127.");
      if (is_host && i > 0 && IsIn(kOthers, words_[i - 1].text)) return false;
      // What is not known comes behind all that the pattern tells.
      const std::string_view known =
          std::string_view(word.text).substr(0, word.known_prefix);
      const bool begins =
          !word.known && told.ends_with('*') && pattern.Matches(known);
      return begins || !word.text.contains(' ') || told.contains(' ');
    }
    if (i == 0 || i > options_end_ || told.contains('=')) return true;
    const std::string_view before = words_[i - 1].text;
    return !IsOption(before) || before.contains('=') || IsFlag(before);
  }

  [[nodiscard]] bool BeginAt(size_t at, std::span<const TextPattern> wanted,
                             bool nocase) const {
    if (wanted.empty()) return true;
    bool behind_option = false;
    for (size_t i = at; i < words_.size(); ++i) {
      const std::string& text = words_[i].text;
      if (IsOption(text)) {
        behind_option = !text.contains('=');
        continue;
      }
      if (wanted[0].Matches(text, nocase) &&
          BeginAt(i + 1, wanted.subspan(1), nocase)) {
        return true;
      }
      // `cargo +nightly publish`
      if (i == 0 && text.starts_with('+')) continue;
      // A value of the option before it, perhaps.
      if (!behind_option) return false;
      behind_option = false;
    }
    return false;
  }

  const std::vector<Word>& words_;
  size_t options_end_ = 0;
  size_t directories_end_ = 0;
};

/// Whether a condition is one for a rule, or for an exception from it.
enum class Use { kWhen, kUnless };

class Matcher {
 public:
  Matcher(const ExecCondition& condition, const Command& command,
          const Surroundings& surroundings, const ExecRule& rule, Use part,
          std::string_view statement)
      : condition_(condition),
        command_(command),
        surroundings_(surroundings),
        arguments_(command),
        statement_(statement),
        nocase_(rule.nocase),
        part_(part),
        in_doubt_(part == Use::kWhen || rule.reads_only ? InDoubt::kCounts
                                                        : InDoubt::kDoesNot) {}

  [[nodiscard]] bool Matches() const {
    return MatchesProgram() && MatchesWords() && MatchesText() &&
           MatchesPaths() && MatchesReads() && MatchesFeeders() &&
           MatchesEnvironment() && MatchesRest();
  }

 private:
  [[nodiscard]] bool MatchesProgram() const {
    if (condition_.programs.empty()) return true;
    std::string_view program = command_.program.text;
    if (!command_.program.known || program.empty()) return false;
    if (program.ends_with(".exe")) program.remove_suffix(4);
    return std::ranges::any_of(
        condition_.programs, [&](const TextPattern& pattern) {
          return pattern.Matches(
              pattern.text().contains('/') ? program : BaseName(program));
        });
  }

  [[nodiscard]] bool Has(const TextPattern& pattern) const {
    return arguments_.Has(pattern, nocase_, in_doubt_);
  }

  [[nodiscard]] bool HasAnyOf(const std::vector<TextPattern>& some) const {
    return std::ranges::any_of(
        some, [&](const TextPattern& one) { return Has(one); });
  }

  [[nodiscard]] bool MatchesWords() const {
    if (!condition_.subcommands.empty() &&
        std::ranges::none_of(condition_.subcommands, [&](const auto& words) {
          return arguments_.Begin(words, nocase_);
        })) {
      return false;
    }
    if (!condition_.verbs.empty() &&
        !arguments_.HasVerb(condition_.verbs, condition_.verb_ends, nocase_)) {
      return false;
    }
    if (!condition_.any_arg.empty() && !HasAnyOf(condition_.any_arg)) {
      return false;
    }
    return std::ranges::all_of(
        condition_.all_args, [&](const auto& some) { return HasAnyOf(some); });
  }

  [[nodiscard]] bool MatchesText() const {
    const bool is_statement =
        condition_.sql.empty() ||
        std::ranges::any_of(condition_.sql, [&](const TextPattern& pattern) {
          return pattern.Matches(statement_, nocase_);
        });
    if (!is_statement) return false;
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
          if (pattern.text == "~") return path.region == Region::kRoot;
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

  /// Whether the path in an argument is no file that is read and sent: a key
  /// that only proves who connects, a file that is written, or one that is left
  /// out.
  [[nodiscard]] bool StaysHere(const PathArgument& path) const {
    constexpr auto kStay =
        std::to_array<std::string_view>({"-i",
                                         "--cert",
                                         "--key",
                                         "--cacert",
                                         "-E",
                                         "--capath",
                                         "-F",
                                         "--identity_file",
                                         "--output",
                                         "-o",
                                         "--private-key",
                                         "--exclude",
                                         "-O",
                                         "--output-document",
                                         "--exclude-from",
                                         "--key-file",
                                         "--ca-certificate",
                                         "--certificate",
                                         "--netrc-file",
                                         "--env-file",
                                         "--password-file",
                                         "--filter",
                                         "-P",
                                         "--directory-prefix",
                                         "--output-dir",
                                         "-e",
                                         "--rsh",
                                         "--include",
                                         "--config",
                                         "-K",
                                         "--kubeconfig",
                                         "--credential-file-override",
                                         "--cookie-jar",
                                         "-c"});
    if (path.argument >= command_.arguments.size()) return false;
    const std::string_view text = command_.arguments[path.argument].text;
    const std::string_view name = BaseName(command_.program.text);
    // Its operands are a host and a command there.
    if (name == "ssh" || name == "rsh") return true;
    const bool may_be_local = name == "rsync" || name == "scp" || name == "rcp";
    if (may_be_local && !NamesOther()) return true;
    if (IsOption(text) && IsIn(kStay, text.substr(0, text.find('=')))) {
      return true;
    }
    if (path.argument == 0) return false;
    const std::string_view before = command_.arguments[path.argument - 1].text;
    // Flags of some that have a value with others.
    const bool is_flag =
        SendsValueOf(before, name) ||
        (name == "rsync" && before.size() == 2 && before != "-e") ||
        ((before == "-O" || before == "-c") && name != "curl" &&
         name != "wget");
    const bool is_cluster = name == "curl" && before.size() > 2 &&
                            before.starts_with('-') && before[1] != '-' &&
                            (before.ends_with('o') || before.ends_with('E'));
    // -F of curl is a part of a form: "name=@file".
    const bool stays = (IsIn(kStay, before) && !is_flag) || is_cluster;
    if (stays && !text.contains('@') && !text.contains("=<")) return true;
    return path.argument + 1 == command_.arguments.size() && Receives();
  }

  /// Whether the file that `option` names is a text or a list of requests.
  [[nodiscard]] static bool SendsValueOf(std::string_view option,
                                         std::string_view program) {
    if (option == "-K" || option == "--config") return program == "curl";
    if (option == "-i") return program == "wget" || program == "aria2c";
    return option == "-F" && (program == "gh" || program == "glab");
  }

  /// Whether another machine is named, or may be.
  [[nodiscard]] bool NamesOther() const {
    return std::ranges::any_of(command_.arguments, [](const Word& word) {
      return !word.known || word.text.contains(':');
    });
  }

  /// Whether what it copies is on another machine.
  [[nodiscard]] bool Receives() const {
    constexpr auto kCopies = std::to_array<std::string_view>(
        {"scp", "rsync", "aws", "gsutil", "gcloud", "rclone", "s3cmd", "mc",
         "rcp", "azcopy", "b2"});
    if (!IsIn(kCopies, BaseName(command_.program.text))) return false;
    return std::ranges::any_of(command_.arguments, [](const Word& word) {
      const std::string_view text = word.text;
      const size_t colon = text.find(':');
      return !IsOption(text) && colon != std::string_view::npos && colon > 0 &&
             text.find('/') > colon;
    });
  }

  [[nodiscard]] bool MatchesReads() const {
    if (condition_.reads.empty()) return true;
    const auto is_that = [&](const PathArgument& path) {
      return IsOneOf(condition_.reads, path) && !StaysHere(path);
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
  const std::string_view statement_;
  const bool nocase_;
  const Use part_;
  const InDoubt in_doubt_;
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
  return programs.empty() && subcommands.empty() && verbs.empty() &&
         any_arg.empty() && all_args.empty() && text.empty() && sql.empty() &&
         paths.empty() && regions == 0 && reads.empty() && fed_by.empty() &&
         env.empty() && scripts.empty() && !remote && !operands;
}

bool Matches(const ExecRule& rule, const Command& command,
             const Surroundings& surroundings) {
  if (rule.reads_only && !IsPlain(command)) return false;
  const auto matches = [&](std::string_view statement) {
    const auto holds = [&](const ExecCondition& condition, Use part) {
      return Matcher(condition, command, surroundings, rule, part, statement)
          .Matches();
    };
    return holds(rule.when, Use::kWhen) &&
           std::ranges::none_of(rule.unless, [&](const ExecCondition& unless) {
             return holds(unless, Use::kUnless);
           });
  };
  if (rule.when.sql.empty()) return matches("");
  return std::ranges::any_of(StatementsOf(command), matches);
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
