#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/call_mark.h"
#include "journal/denials.h"
#include "journal/savepoint.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// Bytes that are kept of each id in a mark, and of its command.
inline constexpr size_t kMaxCallId = 128;
inline constexpr size_t kMaxCallCommand = 1024;

/// `mark` with ids and command cut, and without bytes that the log cannot have.
[[nodiscard]] CallMark BoundedMark(CallMark mark);
/// `mark`, which is bounded, as text without NUL (docs/format.md, "db").
[[nodiscard]] std::string EncodeMark(const CallMark& mark);
/// None if EncodeMark did not make `text`.
[[nodiscard]] std::optional<CallMark> DecodeMark(std::string_view text);

/// The meaning of the name of a savepoint that marks a call.
struct CallName {
  uint64_t number = 0;  ///< of the call, from 1
  bool end = false;     ///< marks its end

  bool operator==(const CallName&) const = default;
};
/// "call-7", "call-7-end".
[[nodiscard]] std::string NameOf(const CallName& call);
/// None for other savepoints.
[[nodiscard]] std::optional<CallName> CallNamed(std::string_view savepoint);
/// `savepoints` without those that mark calls.
[[nodiscard]] std::vector<Savepoint> WithoutCalls(
    std::vector<Savepoint> savepoints);

/// The changes of a call: those between two savepoints.
struct CallSpan {
  uint64_t number = 0;
  Savepoint since;
  std::optional<Savepoint> until;  ///< none: up to now
};
/// The call with this number, if its mark exists.
[[nodiscard]] std::optional<CallSpan> SpanOf(
    const std::vector<Savepoint>& savepoints, uint64_t number);
/// The number of the last call that began; 0: none has a mark.
[[nodiscard]] uint64_t LastCall(const std::vector<Savepoint>& savepoints);
/// The number of the call in which the change `lsn` was made; 0: none.
[[nodiscard]] uint64_t CallAt(const std::vector<Savepoint>& savepoints,
                              Lsn lsn);

/// A call of the open transaction.
struct Call {
  uint64_t number = 0;
  CallMark mark;
  Lsn begin = kNoLsn;
  Lsn end = kNoLsn;  ///< none: no end is marked
  Timestamp began, ended;
  bool gone = false;        ///< its mark no longer exists
  uint64_t operations = 0;  ///< that changed something; 0 if it is gone
  uint64_t changes = 0;     ///< paths that they changed
  /// Numbers of calls that ran at the same time, as far as marks of ends show
  /// it; kMaxOverlaps at most.
  std::vector<uint64_t> overlaps;

  bool operator==(const Call&) const = default;
};
inline constexpr size_t kMaxOverlaps = 100;

/// Finds the calls in a log.
class CallList {
 public:
  /// The next entry, in order.
  void Add(const LogEntry& entry);
  /// The calls, the last at the end. Call once.
  [[nodiscard]] std::vector<Call> Finish() &&;

 private:
  /// A path that an operation changed.
  struct Row {
    Lsn lsn;
    size_t call;  ///< index in `calls_`
    size_t path;  ///< its hash
    uint64_t operations, paths;
  };
  static constexpr size_t kNone = SIZE_MAX;

  void Mark(const LogEntry& entry, const CallName& name);
  void GoBack(Lsn target);
  void Count(const LogEntry& entry);
  void FindOverlaps();

  std::vector<Call> calls_;
  std::vector<Row> rows_;
  size_t current_ = kNone;
};

/// The number of the call that a user means: its number, the host's id, or the
/// beginning of such an id. Error if there is none, or several.
Result<uint64_t> FindCall(const std::vector<Call>& calls,
                          const std::string& wanted);

}  // namespace txfs
