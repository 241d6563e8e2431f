#pragma once

#include <string>

#include "cli/run/probe.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Tries what the sandbox of a run needs. Each function starts a process that
/// does it, and changes nothing that outlives that process.

/// A program that is needed: `program` in PATH. "" if there is none.
[[nodiscard]] std::string FindProgram(const std::string& program);

/// The value of "NAME:" in /proc/self/status; "" if there is none.
[[nodiscard]] std::string OwnStatus(const std::string& name);

/// bwrap is installed.
[[nodiscard]] Probe ProbeBwrap();
/// A user namespace can be made, and ids can be mapped in it.
[[nodiscard]] Probe ProbeUserNamespace();
/// A mount namespace can be made in it that no later mount of the machine
/// enters.
[[nodiscard]] Probe ProbeMountNamespace();
/// A command runs in a sandbox of RunSandboxed.
[[nodiscard]] Probe ProbeSandbox();

/// The error of a sandbox that did not start, with the remedy of the first of
/// these probes that fails.
[[nodiscard]] Error WhyNoSandbox(const std::string& said,
                                 const std::string& options = "");

}  // namespace txfs::cli
