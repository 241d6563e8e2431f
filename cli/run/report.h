#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/protocol/judgement.h"
#include "cli/run/limits.h"
#include "cli/run/run.h"
#include "fs/diff/changes.h"
#include "fs/planning/held.h"
#include "fs/planning/resolution.h"
#include "journal/rule_count.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// What a run did, and what became of it.
struct RunReport {
  std::vector<std::string> command;
  std::optional<RuleVerdict> judgement;  ///< of the rules for commands
  bool direct = false;                   ///< there was no transaction
  std::string workspace;
  std::string transaction;  ///< id
  std::string name;         ///< of a transaction of its own; may be ""
  std::string outcome;      ///< "committed", "kept", "rolled back", ...
  std::string why;          ///< "exit 1", "timeout", ...; "" after success
  int code = 0;             ///< exit code
  std::vector<NetChange> changes;
  uint64_t committed = 0;  ///< changes
  std::vector<Conflict> conflicts;
  HeldReport held;                ///< what stopped the commit
  std::vector<RuleCount> denied;  ///< by rule
  /// Names of hosts that the proxy refused, with how often.
  std::map<std::string, uint64_t> refused;
  std::vector<std::string> dropped;  ///< names of environment variables
  std::vector<std::string> home_kept, home_not_kept;  ///< relative to it
  /// Paths outside of the mounts of the run that the command could write to.
  std::vector<std::string> writable_outside;
  std::vector<TakenSetting> configuration;
  uint64_t timeout_ms = 0;  ///< 0: none
  LimitValues limits;
  ResourcesUsed used;     ///< 0: not measured
  std::string limits_by;  ///< what enforces the limits; "": there are none
  std::vector<std::pair<std::string, uint64_t>> phases;  ///< milliseconds
  uint64_t total_ms = 0;
};

/// The line about the outcome.
[[nodiscard]] std::string OutcomeLine(const RunReport& report);

/// "a.example, b.example (2 times)": the refused names.
[[nodiscard]] std::string RefusedText(
    const std::map<std::string, uint64_t>& refused);

/// Opens the file `path` for a report, empty.
Result<UniqueFd> OpenReport(const std::string& path);
/// Writes the report to `fd` as JSON. `path`: for messages.
Status WriteReport(const RunReport& report, int fd, const std::string& path);

}  // namespace txfs::cli
