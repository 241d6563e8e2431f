#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/rule_count.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

enum class TransactionState { kActive, kCommitting, kCommitted, kDiscarded };

/// "active", "committing", "committed", "discarded".
[[nodiscard]] std::string_view StateName(TransactionState state);
[[nodiscard]] std::optional<TransactionState> StateFromName(
    std::string_view name);

/// What an entry of the history is: a whole transaction, paths of one that was
/// committed while it stayed open, or what took a commit back.
enum class TransactionKind { kWhole, kPartial, kUndo };

/// "transaction", "partial", "undo".
[[nodiscard]] std::string_view KindName(TransactionKind kind);
[[nodiscard]] std::optional<TransactionKind> KindFromName(
    std::string_view name);

/// What is known about a transaction without opening its journal.
struct TransactionSummary {
  std::string id;    ///< 12 lower-case hex digits, sorts by time of creation
  std::string name;  ///< chosen by the user; may be empty
  TransactionState state = TransactionState::kActive;
  TransactionKind kind = TransactionKind::kWhole;
  Timestamp created;
  Timestamp ended;        ///< zero while open
  std::string message;    ///< of the commit
  std::string author;     ///< user who committed
  uint64_t changes = 0;   ///< net changes at the end; 0 while open
  std::string of;         ///< kPartial: the transaction; kUndo: what it undid
  std::string undone_by;  ///< the undo of this commit, if there is one
  std::vector<RuleCount> denied;  ///< what was refused; empty while open
  bool undoable = false;  ///< not stored: the history has what an undo needs
};

[[nodiscard]] bool IsEnded(const TransactionSummary& transaction);

/// Encodes per docs/format.md, "Transaction summary".
[[nodiscard]] Bytes EncodeSummary(const TransactionSummary& summary);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<TransactionSummary> DecodeSummary(ByteSpan in);

/// Hexadecimal, in lower case.
inline constexpr size_t kTransactionIdDigits = 12;
/// Whether `text` has the form of a transaction's id.
[[nodiscard]] bool IsTransactionId(std::string_view text);

/// The one of `list`, which is sorted by age, that `wanted` means: the newest
/// that ended under that name, else the open one of that name, else the one
/// whose id it begins. Undos are found by id only. kUsage when several ids
/// begin with it.
Result<TransactionSummary> FindTransaction(
    const std::vector<TransactionSummary>& list, std::string_view wanted);

/// kUsage unless `name` may be a transaction's: 1 to 64 letters, digits, dots,
/// underscores and dashes, not with a dash in front, and nothing that could be
/// taken for an id.
Status CheckTransactionName(const std::string& name);

}  // namespace txfs
