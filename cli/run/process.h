#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/limits.h"
#include "cli/run/sandbox.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// How a process ended.
struct Ended {
  enum class Why : uint8_t {
    kItself,    ///< exit or a signal
    kTimeout,   ///< stopped after its time
    kLimit,     ///< killed because it exceeded `limit`
    kNotBegun,  ///< bwrap failed before it ran the command: see `said`
    kLost,      ///< stopped because a process that it needs has died
  };
  Why why = Why::kItself;
  int code = 0;  ///< exit code; 128 + N after signal N
  std::optional<ExceededLimit> limit = {};
  std::string said = {};     ///< by bwrap, on its standard error
  bool interrupted = false;  ///< SIGINT came to this process, too
};

/// What ends a run from outside, and where it writes.
struct RunBounds {
  uint64_t timeout_ms = 0;   ///< 0: none
  Limits* limits = nullptr;  ///< for this command alone; null: none
  /// Descriptors of processes (pidfd_open(2)) that the run needs; borrowed.
  std::vector<int> needed;
  /// Gets, before bwrap starts, the inode number of a pipe that only the
  /// processes have open which make the sandbox, and its pid 1.
  std::function<void(uint64_t)> on_pipe;
  /// The standard output of the command is this process's standard error.
  bool output_to_errors = false;
};

/// Ends this process by the default action of `signal`.
void DieBy(int signal);

/// A file in memory with `bytes`, to be read from its begin.
Result<UniqueFd> MemoryFile(std::string_view bytes);

/// The first child of `process`, such as the command of pid 1 of a sandbox. 0:
/// none is there.
pid_t ChildOf(pid_t process);

/// Runs `command` in `sandbox` and waits for its end. When this returns, all
/// processes of the sandbox are gone. The command gets the standard streams of
/// the caller and no other descriptor, is in its process group, and dies with
/// it. Signals that end a process are passed on to the command (SIGINT and
/// SIGQUIT of a terminal reach it by themselves).
///
/// `on_begin` gets the process that ends the sandbox with it, before the
/// command runs.
///
/// Errors: bwrap is missing, or may not make namespaces.
Result<Ended> RunSandboxed(const Sandbox& sandbox,
                           const std::vector<std::string>& command,
                           const RunBounds& bounds,
                           const std::function<void(pid_t)>& on_begin);

/// Runs `command` in `directory` without a sandbox, and waits for its end, as
/// RunSandboxed. Then kills the processes that it left. `environment`:
/// NAME=VALUE; none: this process's. The shell's exit codes 126 and 127 if it
/// cannot be executed, with the error on stderr.
Result<Ended> RunPlain(
    const std::vector<std::string>& command, const std::string& directory,
    const std::optional<std::vector<std::string>>& environment,
    const RunBounds& bounds, const std::function<void(pid_t)>& on_begin = {});

}  // namespace txfs::cli
