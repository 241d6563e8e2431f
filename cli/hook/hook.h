#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/hook/hosts.h"

namespace txfs::cli {

/// The answer to `input`, all that `host` has written, in this process's
/// working directory if the input names none. Never fails: what cannot be
/// judged is refused, or asked about. Also marks begin and end of a call that
/// is not refused, if its directory is in a mount.
[[nodiscard]] HookOutput AnswerHook(const HookHost& host,
                                    std::string_view input);

/// Reads the call from stdin and prints the answer. Returns the exit code,
/// which the host reads.
int RunHook(const HookHost& host);

/// The host whose hook the command line `all` (the program's name first) is;
/// null: it is another command. A host waits for each call, and takes most
/// exit codes for a yes: its hook runs before options are parsed, and without
/// the checks of other commands.
[[nodiscard]] const HookHost* HookIn(const std::vector<std::string>& all);

}  // namespace txfs::cli
