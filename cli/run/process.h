#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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
    kNotBegun,  ///< bwrap failed before it ran the command; it has said why
  };
  Why why = Why::kItself;
  int code = 0;  ///< exit code; 128 + N after signal N
  std::optional<ExceededLimit> limit = {};
};

/// Runs `command` in `sandbox` and waits for its end. When this returns, all
/// processes of the sandbox are gone. The command gets the standard streams of
/// the caller and no other descriptor, is in its process group, and dies with
/// it. Signals that end a process are passed on to the command (SIGINT and
/// SIGQUIT of a terminal reach it by themselves).
///
/// `timeout_ms`: 0: none. `limits`: for this sandbox alone. `on_begin` gets the
/// process that ends the sandbox with it, before the command runs.
///
/// Errors: bwrap is missing, or may not make namespaces.
Result<Ended> RunSandboxed(const Sandbox& sandbox,
                           const std::vector<std::string>& command,
                           uint64_t timeout_ms, Limits& limits,
                           const std::function<void(pid_t)>& on_begin);

}  // namespace txfs::cli
