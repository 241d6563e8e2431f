#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/command.h"
#include "policy/glob.h"
#include "policy/rule.h"

namespace txfs::policy {

/// A pattern of an [[exec]] rule over whole texts: `*` is any run of bytes, `?`
/// one byte, `[a-z]` and `[!a-z]` one of a set, `\` makes the next byte
/// literal.
class TextPattern {
 public:
  /// EINVAL with a sentence: empty, `[` without end, `\` at the end.
  static Result<TextPattern> Parse(std::string_view pattern);
  /// Runs of white space in `text` count as one blank. `nocase`: ASCII letters
  /// match in either case. Takes time in proportion to pattern times text.
  [[nodiscard]] bool Matches(std::string_view text, bool nocase = false) const;
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool is_literal() const { return literal_; }

 private:
  std::string text_;
  bool literal_ = true;
};

/// Which of the operands `path` and `place` are about.
enum class Operand : uint8_t { kAny, kFirst, kLast };

/// What an [[exec]] rule, or an exception from it, matches. Keys that are not
/// given match everything.
struct ExecCondition {
  std::vector<TextPattern> programs;
  /// Any of them; the words of each, in order.
  std::vector<std::vector<TextPattern>> subcommands;
  /// An operand that says what the program is to do, and those that end the
  /// search for it, besides the usual ones.
  std::vector<TextPattern> verbs, verb_ends;
  std::vector<TextPattern> any_arg;
  /// Each of them; of one, any alternative.
  std::vector<std::vector<TextPattern>> all_args;
  std::vector<TextPattern> text;  ///< an argument, or the literal input
  /// One statement of these, without comments and literals.
  std::vector<TextPattern> sql;
  struct Path {
    std::string text;
    Glob glob;
    bool below_home = false;  ///< `~/`: for every home
  };
  std::vector<Path> paths;
  Regions regions = 0;  ///< 0: any
  Operand operand = Operand::kAny;
  std::vector<Path> reads;
  std::vector<TextPattern> fed_by;
  std::vector<TextPattern> env;
  std::vector<Script> scripts;
  std::optional<bool> remote;
  /// Whether there is an operand.
  std::optional<bool> operands;

  [[nodiscard]] bool empty() const;
};

/// An example of an [[exec]] rule: shell text.
struct ExecExample {
  std::string text;
  bool matches = true;
  uint32_t line = 0;
};

/// An [[exec]] rule.
struct ExecRule {
  std::string id;
  ExecCondition when;
  std::vector<ExecCondition> unless;
  bool nocase = false;
  Action action = Action::kDeny;
  Class consequence = Class::kIrreversible;
  bool reads_only = false;  ///< what it matches changes nothing
  bool unlisted = false;    ///< only programs that no other rule names
  std::string reason, suggest;
  Place place;
  std::vector<ExecExample> examples;
};

/// Whether `rule` matches `command`. Pure.
[[nodiscard]] bool Matches(const ExecRule& rule, const Command& command,
                           const Surroundings& surroundings);

/// Where the command will run.
enum class Confinement : uint8_t {
  kNone,
  kMount,  ///< in a mount of txfs
  kRun,    ///< in a mount, in the sandbox of `txfs run`
};
[[nodiscard]] std::string_view NameOf(Confinement confinement);
/// The action of a rule where `confinement` keeps or takes back what the class
/// says.
[[nodiscard]] Action Soften(Action action, Class consequence,
                            Confinement confinement);

/// The words of a simple command: names, paths and options, quoted with ' or "
/// or not at all. None for text that has any other syntax of a shell.
[[nodiscard]] std::optional<std::vector<Word>> SimpleWords(
    std::string_view text);
/// The directories of examples.
[[nodiscard]] const Surroundings& ExampleSurroundings();

}  // namespace txfs::policy
