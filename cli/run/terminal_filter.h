#pragma once

#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// A seccomp filter, as bwrap --seccomp reads it, that refuses (EPERM) what
/// leads out of a sandbox that shares the caller's terminal and session:
/// injecting input into the terminal (ioctl TIOCSTI and TIOCLINUX) and the
/// kernel's keyrings.
Result<std::string> TerminalFilter();

}  // namespace txfs::cli
