#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/exec_rule.h"

namespace txfs::cli {

/// A command that a rule stops, to be disguised.
struct DisguiseRow {
  const policy::ExecRule* rule = nullptr;
  std::string text;
  /// Program and arguments; empty: the text is no simple command.
  std::vector<std::string> words;
};

/// What a disguise needs of a command to leave its meaning as it is.
enum class Needs : uint8_t {
  kText,       ///< any shell text
  kLine,       ///< text on one line
  kProgram,    ///< a program with arguments
  kName,       ///< its program has no slash
  kPlain,      ///< no word has blanks, quotes, braces or letters for patterns
  kPlainText,  ///< the same; what runs it is a shell
  kOwn,        ///< see the disguise itself
};

/// A way to run or to hide a command.
struct Disguise {
  std::string name;
  /// %s: the text; %q: the text as one quoted word; %b: in base64; %r:
  /// reversed; %w: quoted words; %p: the program; %a: the arguments, with a
  /// blank before each; %l: the last word; %f: all words but the last. "":
  /// `make` makes it.
  std::string form;
  Needs needs = Needs::kText;
  /// None: it does not apply to the command.
  std::optional<std::string> (*make)(const DisguiseRow& row) = nullptr;
  std::string why = {};  ///< when `make` does not apply
};

/// All of them, in the order of the table.
[[nodiscard]] const std::vector<Disguise>& Disguises();
/// What the legend of the table says of `needs`.
[[nodiscard]] std::string ReasonOf(const Disguise& disguise);
/// Whether `disguise` runs shell text, so that its form takes any number of
/// commands.
[[nodiscard]] bool RunsText(const Disguise& disguise);
/// The form of `disguise` with `row` in it.
[[nodiscard]] std::string FilledIn(const Disguise& disguise,
                                   const DisguiseRow& row);
/// The text of `row` in `disguise`; none: that would mean something else.
[[nodiscard]] std::optional<std::string> Disguised(const Disguise& disguise,
                                                   const DisguiseRow& row);

}  // namespace txfs::cli
