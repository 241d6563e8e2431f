#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/shell/part.h"
#include "policy/command.h"

namespace txfs::cli {

/// Where a command will run.
struct ShellStart {
  policy::Surroundings surroundings;
  std::string directory;  ///< absolute and normal
};

/// Takes shell text apart (docs/commands.md): parses it, follows variables,
/// functions and directories that the text itself sets, and unwraps commands
/// that run others. Runs nothing of it. Never fails: what cannot be parsed or
/// known is in `unknown`.
[[nodiscard]] ShellReading ReadShellText(std::string_view text,
                                         const ShellStart& start);

/// As ReadShellText, for a program and its arguments.
[[nodiscard]] ShellReading ReadCommandWords(
    const std::vector<std::string>& words, const ShellStart& start);

}  // namespace txfs::cli
