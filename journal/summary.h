#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/rule_count.h"
#include "journal/run_record.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

enum class TransactionState { kActive, kCommitting, kCommitted, kDiscarded };

/// "active", "committing", "committed", "discarded".
[[nodiscard]] std::string_view StateName(TransactionState state);
[[nodiscard]] std::optional<TransactionState> StateFromName(
    std::string_view name);

/// The kind of an entry of the history: a whole transaction, a partial commit
/// of a transaction that stayed open, or an undo.
enum class TransactionKind { kWhole, kPartial, kUndo };

/// "transaction", "partial", "undo".
[[nodiscard]] std::string_view KindName(TransactionKind kind);
[[nodiscard]] std::optional<TransactionKind> KindFromName(
    std::string_view name);

/// The part of a transaction's state that is known without its journal.
struct TransactionSummary {
  std::string id;    ///< 12 lower-case hex digits, sorts by time of creation
  std::string name;  ///< chosen by the user; may be empty
  TransactionState state = TransactionState::kActive;
  TransactionKind kind = TransactionKind::kWhole;
  Timestamp created;
  Timestamp ended;       ///< zero while open
  std::string message;   ///< of the commit
  std::string author;    ///< user who committed
  uint64_t changes = 0;  ///< net changes at the end; 0 while open
  std::string of;  ///< kPartial: the transaction; kUndo: the undone commit
  std::string undone_by;          ///< the undo of this commit, if there is one
  std::vector<RuleCount> denied;  ///< denials by rule; empty while open
  std::vector<RunRecord> runs;    ///< of `txfs run`, the last ones
  bool undoable = false;  ///< not stored: the history has what an undo needs
};

[[nodiscard]] bool IsEnded(const TransactionSummary& transaction);

/// Encodes per docs/format.md, "Transaction summary".
[[nodiscard]] Bytes EncodeSummary(const TransactionSummary& summary);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<TransactionSummary> DecodeSummary(ByteSpan in);

/// Lower-case hexadecimal digits.
inline constexpr size_t kTransactionIdDigits = 12;
/// Whether `text` has the form of a transaction's id.
[[nodiscard]] bool IsTransactionId(std::string_view text);

/// Finds the transaction in `list`, which is sorted by age. `wanted` is a name
/// (the transaction with that name that ended last, else the open one) or the
/// beginning of an id. Undos are found by id only. kUsage if several ids begin
/// with it.
Result<TransactionSummary> FindTransaction(
    const std::vector<TransactionSummary>& list, std::string_view wanted);

/// kUsage unless `name` is a valid name of a transaction: 1 to 64 letters,
/// digits, dots, underscores and dashes, no dash in front, and not of the form
/// of an id.
Status CheckTransactionName(const std::string& name);

}  // namespace txfs
