#pragma once

#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// The process's exit code for an error of this kind.
int ExitCode(ErrorKind kind);

/// Prints `error: ...` and, if there is a hint, `hint: ...` to stderr; returns
/// the exit code.
int Report(const Error& error);

/// What went wrong, and what to do, as one sentence for another program to
/// show.
[[nodiscard]] std::string Explained(const Error& error);

/// Prints one line to stderr. Escapes control characters in `line`.
void Say(std::string_view line);

/// As Say, to stdout: the result of a command that has no other output.
void SayResult(std::string_view line);

/// From now on Say and SayResult print nothing; Report still does.
void SayNothing();

/// Reports the commit `id`, whose process had died and which this command
/// finished; "": no output.
void SayFinished(std::string_view id);

}  // namespace txfs::cli
