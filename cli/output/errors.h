#pragma once

#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// The process's exit code for an error of this kind.
int ExitCode(ErrorKind kind);

/// Prints `error: ...` and, if there is one, `hint: ...` to stderr; returns the
/// exit code.
int Report(const Error& error);

/// One line of talk on stderr. Control characters in `line` are escaped.
void Say(std::string_view line);

/// Tells of the commit `id` that a process had died in, and that was finished
/// on the way; of none if it is empty.
void SayFinished(std::string_view id);

}  // namespace txfs::cli
