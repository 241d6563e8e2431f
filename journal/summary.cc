#include "journal/summary.h"

#include <algorithm>
#include <array>

#include "journal/frame.h"
#include "journal/support/names.h"

namespace txfs {
namespace {

constexpr FileFrame kSummaryFrame = {
    .magic = "TXFSTXN\n", .version = 3, .what = "transaction summary"};
/// Without runs, and without denials either: what older programs can read.
constexpr FileFrame kSecondFrame = {
    .magic = kSummaryFrame.magic, .version = 2, .what = kSummaryFrame.what};
constexpr FileFrame kFirstFrame = {
    .magic = kSummaryFrame.magic, .version = 1, .what = kSummaryFrame.what};

constexpr FileFrame kRunsFrame = {
    .magic = "TXFSRUN\n", .version = 1, .what = "list of runs"};
/// The longest that is recorded of a run, bytes.
constexpr size_t kCommandMax = 1024;
constexpr size_t kRunTextMax = 255;

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

using NamedOutcome = Named<RunOutcome>;
constexpr std::array kOutcomes = {
    NamedOutcome{RunOutcome::kRunning, "running"},
    NamedOutcome{RunOutcome::kCommitted, "committed"},
    NamedOutcome{RunOutcome::kKept, "kept"},
    NamedOutcome{RunOutcome::kRolledBack, "rolled back"},
    NamedOutcome{RunOutcome::kUnchanged, "unchanged"},
    NamedOutcome{RunOutcome::kInterrupted, "interrupted"},
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

// --- runs ------------------------------------------------------------------

std::string_view OutcomeName(RunOutcome outcome) {
  return NameIn(kOutcomes, outcome);
}

RunOutcome OutcomeFromName(std::string_view name) {
  return ValueIn(kOutcomes, name).value_or(RunOutcome::kRunning);
}

RunRecord Bounded(RunRecord run) {
  for (std::string* text : {&run.id, &run.profile, &run.why}) {
    if (text->size() > kRunTextMax) text->resize(kRunTextMax);
  }
  size_t room = kCommandMax;
  for (size_t i = 0; i < run.command.size(); ++i) {
    std::string& word = run.command[i];
    // An empty word takes room, too.
    if (word.size() < room) {
      room -= word.size() + 1;
      continue;
    }
    word.resize(room);
    run.command.resize(i + (room == 0 ? 0 : 1));
    run.is_cut = true;
  }
  return run;
}

bool HasOperation(const RunRecord& run, Lsn lsn) {
  return lsn > run.after &&
         (run.outcome == RunOutcome::kRunning || lsn <= run.until);
}

namespace {

void PutRuns(const std::vector<RunRecord>& runs, Encoder& encoder) {
  encoder.Put(static_cast<uint32_t>(runs.size()));
  for (const RunRecord& run : runs) {
    encoder.PutString(run.id);
    encoder.Put(static_cast<uint32_t>(run.command.size()));
    for (const std::string& word : run.command) encoder.PutString(word);
    encoder.Put(static_cast<uint8_t>(run.is_cut ? 1 : 0));
    encoder.PutString(run.profile);
    encoder.Put(static_cast<uint8_t>(run.outcome));
    encoder.PutString(run.why);
    encoder.Put(run.code);
    encoder.Put(run.begin.sec);
    encoder.Put(run.begin.nsec);
    encoder.Put(run.milliseconds);
    encoder.Put(Raw(run.after));
    encoder.Put(Raw(run.until));
  }
}

/// Whether it may be one that was written.
bool MakesSense(const RunRecord& run) {
  size_t room = kCommandMax;
  for (const std::string& word : run.command) {
    if (room == 0 || word.size() > room) return false;
    room -= std::min(word.size() + 1, room);
  }
  return !run.id.empty() && run.id.size() <= kRunTextMax &&
         run.profile.size() <= kRunTextMax && run.why.size() <= kRunTextMax &&
         OutcomeName(run.outcome) != "unknown" && IsTime(run.begin);
}

std::vector<RunRecord> GetRuns(Decoder& decoder) {
  const auto count = decoder.Get<uint32_t>();
  if (count > kRunsKept) decoder.SetBad();
  std::vector<RunRecord> runs;
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    RunRecord run;
    run.id = decoder.GetString();
    const auto words = decoder.Get<uint32_t>();
    if (words > kCommandMax) decoder.SetBad();
    for (uint32_t word = 0; word < words && decoder.ok(); ++word) {
      run.command.emplace_back(decoder.GetString());
    }
    run.is_cut = decoder.GetBool();
    run.profile = decoder.GetString();
    run.outcome = static_cast<RunOutcome>(decoder.Get<uint8_t>());
    run.why = decoder.GetString();
    run.code = decoder.Get<uint32_t>();
    run.begin.sec = decoder.Get<int64_t>();
    run.begin.nsec = decoder.Get<uint32_t>();
    run.milliseconds = decoder.Get<uint64_t>();
    run.after = Lsn{decoder.Get<uint64_t>()};
    run.until = Lsn{decoder.Get<uint64_t>()};
    if (!MakesSense(run)) decoder.SetBad();
    runs.push_back(std::move(run));
  }
  return runs;
}

}  // namespace

Bytes EncodeRuns(const std::vector<RunRecord>& runs) {
  Bytes bytes;
  Encoder encoder(bytes);
  PutRuns(runs, encoder);
  return PutInFrame(kRunsFrame, bytes);
}

Result<std::vector<RunRecord>> DecodeRuns(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kRunsFrame, in)));
  std::vector<RunRecord> runs = GetRuns(decoder);
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kRunsFrame);
  return runs;
}

// --- summaries -------------------------------------------------------------

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
  const bool has_runs = !summary.runs.empty();
  if (summary.denied.empty() && !has_runs) {
    return PutInFrame(kFirstFrame, bytes);
  }
  encoder.Put(static_cast<uint32_t>(summary.denied.size()));
  for (const RuleCount& denied : summary.denied) {
    encoder.PutString(denied.rule);
    encoder.Put(denied.count);
  }
  if (!has_runs) return PutInFrame(kSecondFrame, bytes);
  PutRuns(summary.runs, encoder);
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
  if (VersionIn(kSummaryFrame, in) >= 3) summary.runs = GetRuns(decoder);
  if (!decoder.ok() || decoder.remaining() != 0 || !MakesSense(summary)) {
    return Damaged(kSummaryFrame);
  }
  return summary;
}

}  // namespace txfs
