#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/command.h"

namespace txfs::cli {

/// A path of the machine that a container has at `target`.
struct Binding {
  std::string source;  ///< may be relative
  std::string target;  ///< absolute, without a slash at its end; "": the root
};

/// A command that another one runs.
struct Unwrapped {
  /// How the arguments name it.
  enum class As : uint8_t {
    kArguments,  ///< as program and arguments
    kText,       ///< as shell text: the words, with blanks between them
    kInput,      ///< as shell text on the standard input
  };
  As as = As::kArguments;
  std::vector<policy::Word> words;
  std::vector<std::string> environment;   ///< NAME=VALUE, added by it
  std::optional<policy::Word> directory;  ///< in which it runs the command
  /// Where the words that it adds go: those equal to this are replaced, and
  /// with "" they are added at the end. None: it adds none.
  std::optional<std::string> placeholder;
  /// What it adds are names below these directories (find); empty: what it
  /// reads.
  std::vector<policy::Word> roots;
  std::string name;  ///< the pattern of the names that find looks for
  /// Words that it adds, one for each run (parallel); empty: see above.
  std::vector<policy::Word> added;
  bool remote = false;  ///< on another machine, or in another container
  /// In a container that is made for it, and that goes with it.
  bool contained = false;
  std::vector<Binding> bindings;  ///< of that container
  bool acts = false;  ///< the program does more than to run the command
  /// What follows the text of `sh -c`: $0, $1, ...
  std::vector<policy::Word> arguments;
};

/// The commands that `words`, a program and its arguments, runs: of sudo, env,
/// xargs, find -exec, ssh, `sh -c` and the like. None if the program is no
/// wrapper, or runs nothing here.
[[nodiscard]] std::vector<Unwrapped> Unwrap(
    const std::vector<policy::Word>& words);

/// The same of tools that have a subcommand or an option for it: of projects,
/// of containers, of other machines.
[[nodiscard]] std::vector<Unwrapped> UnwrapTool(
    const std::vector<policy::Word>& words);
/// Whether these words of a shell have it check a script, and not run it.
[[nodiscard]] bool OnlyParses(const std::vector<policy::Word>& words);
/// The command lines in `text`, a makefile.
[[nodiscard]] std::vector<std::string> RecipesIn(std::string_view text);

/// Whether `name` is a shell whose syntax is read here.
[[nodiscard]] bool IsShell(std::string_view name);
/// `words` with blanks between them.
[[nodiscard]] policy::Word Joined(const std::vector<policy::Word>& words);

}  // namespace txfs::cli
