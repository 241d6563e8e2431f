#pragma once

#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

namespace txfs::testing {

/// How a command ended, and what it said.
struct CommandResult {
  int exit_code = -1;  ///< 128 + signal when a signal ended it
  std::string output;  ///< stdout
  std::string errors;  ///< stderr
};

/// Runs `command` (found by PATH) to its end. Its output goes through files,
/// not pipes: a daemon that it leaves behind cannot keep the caller waiting.
CommandResult RunCommand(const std::vector<std::string>& command);

/// Sends `signal` to a process that need not be a child, and waits until it is
/// gone.
void KillAndWait(pid_t pid, int signal = SIGKILL);

/// The program under test: $TXFS_BINARY, else the one that was built along;
/// empty when neither is.
std::string TxfsBinary();

}  // namespace txfs::testing
