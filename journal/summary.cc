#include "journal/summary.h"

#include <array>

#include "journal/frame.h"
#include "journal/support/names.h"

namespace txfs {
namespace {

constexpr FileFrame kSummaryFrame = {
    .magic = "TXFSTXN\n", .version = 2, .what = "transaction summary"};
/// Without denials, which is what older programs can read.
constexpr FileFrame kFirstFrame = {
    .magic = kSummaryFrame.magic, .version = 1, .what = kSummaryFrame.what};

using NamedState = Named<TransactionState>;
constexpr std::array kStates = {
    NamedState{TransactionState::kActive, "active"},
    NamedState{TransactionState::kCommitting, "committing"},
    NamedState{TransactionState::kCommitted, "committed"},
    NamedState{TransactionState::kDiscarded, "discarded"},
};

using NamedKind = Named<TransactionKind>;
constexpr std::array kKinds = {
    NamedKind{TransactionKind::kWhole, "transaction"},
    NamedKind{TransactionKind::kPartial, "partial"},
    NamedKind{TransactionKind::kUndo, "undo"},
};

}  // namespace

std::string_view StateName(TransactionState state) {
  return NameIn(kStates, state);
}

std::optional<TransactionState> StateFromName(std::string_view name) {
  return ValueIn(kStates, name);
}

std::string_view KindName(TransactionKind kind) { return NameIn(kKinds, kind); }

std::optional<TransactionKind> KindFromName(std::string_view name) {
  return ValueIn(kKinds, name);
}

namespace {

/// Ids are milliseconds in 48 bits, and no clock that gave one shows another
/// time.
constexpr int64_t kLastSecond = (int64_t{1} << 48) / 1000;

bool IsTime(Timestamp time) {
  return time.sec >= 0 && time.sec <= kLastSecond && time.nsec < 1'000'000'000;
}

/// Whether `id` may be that of another entry than `own`.
bool IsOther(const std::string& id, const std::string& own) {
  return IsTransactionId(id) && id != own;
}

/// Whether it may be one that was written.
bool MakesSense(const TransactionSummary& summary) {
  const bool has_of = summary.kind != TransactionKind::kWhole;
  const std::string& undo = summary.undone_by;
  return StateName(summary.state) != "unknown" &&
         KindName(summary.kind) != "unknown" && IsTransactionId(summary.id) &&
         (summary.name.empty() || CheckTransactionName(summary.name)) &&
         IsTime(summary.created) && IsTime(summary.ended) &&
         (has_of ? IsOther(summary.of, summary.id) : summary.of.empty()) &&
         (undo.empty() || IsOther(undo, summary.id));
}

}  // namespace

bool IsTransactionId(std::string_view text) {
  return text.size() == kTransactionIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool IsEnded(const TransactionSummary& transaction) {
  return transaction.state == TransactionState::kCommitted ||
         transaction.state == TransactionState::kDiscarded;
}

Result<TransactionSummary> FindTransaction(
    const std::vector<TransactionSummary>& list, std::string_view wanted) {
  constexpr size_t kListed = 8;
  std::optional<TransactionSummary> named;
  std::vector<const TransactionSummary*> begun;
  for (const TransactionSummary& transaction : list) {
    if (wanted.empty()) break;
    const bool is_undo = transaction.kind == TransactionKind::kUndo;
    if (transaction.name == wanted && !is_undo &&
        (!named ||
         (IsEnded(transaction) && named->ended <= transaction.ended))) {
      named = transaction;
    }
    if (transaction.id.starts_with(wanted)) begun.push_back(&transaction);
  }
  if (named) return *named;
  if (begun.size() == 1) return *begun.front();
  if (begun.empty()) {
    return Fail(0, "there is no transaction \"" + std::string(wanted) + '"',
                "`txfs list` shows the transactions");
  }
  std::string ids;
  for (size_t i = 0; i < begun.size() && i < kListed; ++i) {
    ids += (i == 0 ? "" : ", ") + begun[i]->id;
  }
  if (begun.size() > kListed) ids += ", ...";
  return Fail(ErrorKind::kUsage, 0,
              "several ids begin with " + std::string(wanted) + ": " + ids,
              "give more digits of the id");
}

Status CheckTransactionName(const std::string& name) {
  constexpr size_t kLongest = 64;
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  if (IsTransactionId(name)) {
    return Fail(ErrorKind::kUsage, 0,
                "the name " + name + " looks like a transaction id",
                "choose one that is not 12 hexadecimal digits");
  }
  if (!name.empty() && name.size() <= kLongest && name.front() != '-' &&
      name.find_first_not_of(kAllowed) == std::string::npos) {
    return {};
  }
  return Fail(ErrorKind::kUsage, 0,
              '"' + name + "\" cannot be the name of a transaction",
              "use 1 to 64 letters, digits, dots, underscores and dashes, and "
              "no dash in front");
}

Bytes EncodeSummary(const TransactionSummary& summary) {
  Bytes bytes;
  Encoder encoder(bytes);
  encoder.PutString(summary.id);
  encoder.PutString(summary.name);
  encoder.Put(static_cast<uint8_t>(summary.state));
  encoder.Put(summary.created.sec);
  encoder.Put(summary.created.nsec);
  encoder.Put(summary.ended.sec);
  encoder.Put(summary.ended.nsec);
  encoder.PutString(summary.message);
  encoder.Put(summary.changes);
  encoder.Put(static_cast<uint8_t>(summary.kind));
  encoder.PutString(summary.author);
  encoder.PutString(summary.of);
  encoder.PutString(summary.undone_by);
  if (summary.denied.empty()) return PutInFrame(kFirstFrame, bytes);
  encoder.Put(static_cast<uint32_t>(summary.denied.size()));
  for (const RuleCount& denied : summary.denied) {
    encoder.PutString(denied.rule);
    encoder.Put(denied.count);
  }
  return PutInFrame(kSummaryFrame, bytes);
}

Result<TransactionSummary> DecodeSummary(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kSummaryFrame, in)));
  TransactionSummary summary;
  summary.id = decoder.GetString();
  summary.name = decoder.GetString();
  summary.state = static_cast<TransactionState>(decoder.Get<uint8_t>());
  summary.created.sec = decoder.Get<int64_t>();
  summary.created.nsec = decoder.Get<uint32_t>();
  summary.ended.sec = decoder.Get<int64_t>();
  summary.ended.nsec = decoder.Get<uint32_t>();
  summary.message = decoder.GetString();
  summary.changes = decoder.Get<uint64_t>();
  summary.kind = static_cast<TransactionKind>(decoder.Get<uint8_t>());
  summary.author = decoder.GetString();
  summary.of = decoder.GetString();
  summary.undone_by = decoder.GetString();
  const bool has_denied = decoder.remaining() != 0;
  const uint32_t denied = has_denied ? decoder.Get<uint32_t>() : 0;
  for (uint32_t i = 0; i < denied && decoder.ok(); ++i) {
    std::string rule(decoder.GetString());
    summary.denied.push_back({std::move(rule), decoder.Get<uint64_t>()});
  }
  if (!decoder.ok() || decoder.remaining() != 0 || !MakesSense(summary)) {
    return Damaged(kSummaryFrame);
  }
  return summary;
}

}  // namespace txfs
