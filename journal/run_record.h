#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// What became of a run of `txfs run`.
enum class RunOutcome {
  kRunning,
  kCommitted,
  kKept,
  kRolledBack,
  kUnchanged,
  kInterrupted,  ///< the daemon of its mount died
};

/// "running", "committed", "kept", "rolled back", "unchanged", "interrupted".
[[nodiscard]] std::string_view OutcomeName(RunOutcome outcome);
/// kRunning for an unknown name.
[[nodiscard]] RunOutcome OutcomeFromName(std::string_view name);

/// A run of `txfs run`, as its transaction records it.
struct RunRecord {
  std::string id;                    ///< "run-" and six characters
  std::vector<std::string> command;  ///< with its arguments
  bool is_cut = false;               ///< the command was longer
  std::string profile;               ///< "": none
  RunOutcome outcome = RunOutcome::kRunning;
  std::string why;    ///< of a failure: "exit 1", "timeout", ...; may be ""
  uint32_t code = 0;  ///< exit code; 0 while it runs
  Timestamp begin;
  uint64_t milliseconds = 0;  ///< duration; 0 while it runs
  /// Its operations in the log of the transaction are those after `after`, and
  /// up to `until` unless it runs.
  Lsn after = kNoLsn, until = kNoLsn;

  bool operator==(const RunRecord&) const = default;
};

/// How many runs of a transaction are recorded, the last ones.
inline constexpr size_t kRunsKept = 50;

/// `run` without what is too long to be recorded.
[[nodiscard]] RunRecord Bounded(RunRecord run);

/// Whether the operation `lsn` of the transaction belongs to `run`.
[[nodiscard]] bool HasOperation(const RunRecord& run, Lsn lsn);

/// Encodes per docs/format.md, "Runs".
[[nodiscard]] Bytes EncodeRuns(const std::vector<RunRecord>& runs);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<std::vector<RunRecord>> DecodeRuns(ByteSpan in);

}  // namespace txfs
