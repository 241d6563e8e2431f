#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/command.h"

namespace txfs::cli {

/// Languages whose programs stand in arguments: `python -c`, `perl -e`.
enum class Language : uint8_t {
  kPython,
  kPerl,
  kRuby,
  kNode,
  kPhp,
  kAwk,
  kLua,
  kTcl
};

/// Stands for the file or directory that mktemp(1) or mkdtemp(3) makes.
inline constexpr const char* kNewTemporary = "/tmp/made-by-mktemp";
/// Most effects of one program.
inline constexpr size_t kMaxCodeEffects = 256;

/// The language that the program `name` interprets; none: none of these.
[[nodiscard]] std::optional<Language> LanguageOf(std::string_view name);

/// Where an interpreter has its program from.
struct CodeSource {
  bool is_input = false;            ///< standard input
  std::vector<policy::Word> texts;  ///< arguments; empty: a file
};
/// `words`: the interpreter and its arguments.
[[nodiscard]] CodeSource SourceOfCode(Language language,
                                      const std::vector<policy::Word>& words);

/// What the programs of sed do besides their output.
struct SedEffects {
  /// Commands that it runs: of `e`, and of the flag e of a substitution.
  std::vector<policy::Word> commands;
  /// Files that it writes: of `w`, and of the flag w.
  std::vector<policy::Word> files;
};
/// `words`: sed and its arguments; `input`: its standard input, if it is known.
[[nodiscard]] SedEffects EffectsOfSed(const std::vector<policy::Word>& words,
                                      const std::optional<std::string>& input);

/// What a call in a program does.
struct CodeEffect {
  enum class Kind : uint8_t {
    kText,       ///< runs words[0] as shell text
    kArguments,  ///< runs a program with its arguments
    kRemove,     ///< removes the files `words`
    kRemoveTree,
    kWrite,         ///< writes to the files `words`
    kRunDownload,   ///< runs text from the network
    kRunDecoded,    ///< runs text that it decodes
    kShellForPeer,  ///< gives another machine a shell
    kSend,          ///< sends one of the files `words`
  };
  Kind kind = Kind::kText;
  /// Unknown words stand for what is no literal.
  std::vector<policy::Word> words;
};

/// Calls in `code` that run programs or change files, by their usual names and
/// the literals in their arguments. A heuristic: it does not parse the
/// language, and what it does not find may be there all the same.
[[nodiscard]] std::vector<CodeEffect> FindEffects(Language language,
                                                  std::string_view code);

}  // namespace txfs::cli
