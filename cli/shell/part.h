#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "journal/support/result.h"
#include "policy/command.h"

namespace txfs::cli {

/// One start of a program in shell text, or one write by a redirection (program
/// ">").
struct ShellPart {
  policy::Command command;
  /// The programs and constructs that run it, the outermost first: "sudo",
  /// "bash -c".
  std::vector<std::string> via;
  bool is_wrapper = false;  ///< it only runs another part
  bool is_guess = false;    ///< found by a heuristic, in code of a language
};

/// What shell text does, as far as it tells.
struct ShellReading {
  std::vector<ShellPart> parts;
  std::vector<std::string> unknown;  ///< sentences: what could not be known
  /// The parser is missing or does not work: there may be any other parts.
  std::optional<Error> failure;
  /// All of it is plain (cli/plain/plain_syntax.h), so that the parts are all
  /// of it.
  bool is_plain = true;
  /// Files that redirections read, and the directories in which they are.
  std::vector<std::pair<policy::Word, std::string>> inputs;
};

/// The most parts of one text; deeper nesting, or more parts, are not known.
inline constexpr size_t kMaxShellParts = 1024;
inline constexpr size_t kMaxShellDepth = 16;

}  // namespace txfs::cli
