#include "fs/workspace/calls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "journal/change.h"

namespace txfs {
namespace {

constexpr char kBetween = '\x1f';
constexpr std::string_view kCallPrefix = "call-";
constexpr std::string_view kEndSuffix = "-end";

/// The ids in the order in which they are stored.
constexpr std::array kIds = {&CallMark::host,  &CallMark::session,
                             &CallMark::turn,  &CallMark::call,
                             &CallMark::agent, &CallMark::tool};

bool IsControlByte(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
}

std::optional<uint64_t> NumberIn(std::string_view digits) {
  if (digits.empty() || digits.front() == '0') return std::nullopt;
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [at, error] = std::from_chars(digits.data(), end, number);
  const bool sound = error == std::errc() && at == end;
  return sound ? std::optional(number) : std::nullopt;
}

}  // namespace

// --- marks -----------------------------------------------------------------

CallMark BoundedMark(CallMark mark) {
  for (const auto id : kIds) {
    std::string& text = mark.*id;
    if (text.size() > kMaxCallId) text.resize(kMaxCallId);
    std::ranges::replace_if(text, IsControlByte, '?');
  }
  std::string& command = mark.command;
  if (command.size() > kMaxCallCommand) command.resize(kMaxCallCommand);
  std::ranges::replace(command, '\0', ' ');
  std::ranges::replace(command, kBetween, ' ');
  return mark;
}

std::string EncodeMark(const CallMark& mark) {
  std::string text = "call";
  for (const auto id : kIds) text += kBetween + mark.*id;
  return text + kBetween + mark.command;
}

std::optional<CallMark> DecodeMark(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(kBetween);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (parts.size() != kIds.size() + 2 || parts[0] != "call") {
    return std::nullopt;
  }
  CallMark mark;
  for (size_t i = 0; i < kIds.size(); ++i) mark.*kIds[i] = parts[i + 1];
  mark.command = parts.back();
  return mark;
}

std::string NameOf(const CallName& call) {
  return std::string(kCallPrefix) + std::to_string(call.number) +
         std::string(call.end ? kEndSuffix : "");
}

std::optional<CallName> CallNamed(std::string_view savepoint) {
  if (!savepoint.starts_with(kCallPrefix)) return std::nullopt;
  savepoint.remove_prefix(kCallPrefix.size());
  CallName name;
  name.end = savepoint.ends_with(kEndSuffix);
  if (name.end) savepoint.remove_suffix(kEndSuffix.size());
  const auto number = NumberIn(savepoint);
  if (!number) return std::nullopt;
  name.number = *number;
  return name;
}

// --- savepoints ------------------------------------------------------------

std::vector<Savepoint> WithoutCalls(std::vector<Savepoint> savepoints) {
  std::erase_if(savepoints, [](const Savepoint& savepoint) {
    return CallNamed(savepoint.name).has_value();
  });
  return savepoints;
}

std::optional<CallSpan> SpanOf(const std::vector<Savepoint>& savepoints,
                               uint64_t number) {
  const auto begin =
      std::ranges::find(savepoints, NameOf({number, false}), &Savepoint::name);
  if (begin == savepoints.end()) return std::nullopt;
  CallSpan span{.number = number, .since = *begin, .until = std::nullopt};
  for (auto at = std::next(begin); at != savepoints.end(); ++at) {
    const auto name = CallNamed(at->name);
    if (!name || (name->end && name->number != number)) continue;
    span.until = *at;
    break;
  }
  return span;
}

uint64_t LastCall(const std::vector<Savepoint>& savepoints) {
  uint64_t last = 0;
  for (const Savepoint& savepoint : savepoints) {
    const auto name = CallNamed(savepoint.name);
    if (name) last = std::max(last, name->number);
  }
  return last;
}

uint64_t CallAt(const std::vector<Savepoint>& savepoints, Lsn lsn) {
  auto at = std::ranges::upper_bound(savepoints, lsn, {}, &Savepoint::lsn);
  // The end of a call that began before hides no later begin.
  std::vector<uint64_t> ended;
  while (at != savepoints.begin()) {
    const auto name = CallNamed((--at)->name);
    if (!name) continue;
    if (!name->end)
      return std::ranges::count(ended, name->number) == 0 ? name->number : 0;
    ended.push_back(name->number);
  }
  return 0;
}

// --- the list --------------------------------------------------------------

void CallList::Add(const LogEntry& entry) {
  const Change& change = entry.change;
  switch (change.op) {
    case Op::kSavepoint:
      if (const auto name = CallNamed(change.path)) Mark(entry, *name);
      return;
    case Op::kRollback:
      return GoBack(Lsn{change.offset});
    case Op::kCommit:
    case Op::kDiscard:
      // Of a part: it drops all savepoints.
      return GoBack(kNoLsn);
    default:
      return Count(entry);
  }
}

void CallList::Mark(const LogEntry& entry, const CallName& name) {
  const Change& change = entry.change;
  if (!name.end) {
    current_ = calls_.size();
    Call& call = calls_.emplace_back();
    call.number = name.number;
    call.begin = entry.lsn;
    call.began = change.time;
    call.mark = DecodeMark(change.new_path).value_or(CallMark());
    return;
  }
  for (size_t i = calls_.size(); i > 0; --i) {
    Call& call = calls_[i - 1];
    if (call.gone || call.number != name.number) continue;
    call.end = entry.lsn;
    call.ended = change.time;
    if (current_ == i - 1) current_ = kNone;
    return;
  }
}

void CallList::GoBack(Lsn target) {
  while (!rows_.empty() && rows_.back().lsn > target) rows_.pop_back();
  current_ = kNone;
  for (size_t i = calls_.size(); i > 0; --i) {
    Call& call = calls_[i - 1];
    if (call.gone) continue;
    if (call.begin > target) {
      call.gone = true;
      continue;
    }
    if (call.end > target) {
      call.end = kNoLsn;
      call.ended = {};
    }
    if (current_ == kNone) current_ = i - 1;
  }
  if (current_ != kNone && calls_[current_].end != kNoLsn) current_ = kNone;
}

void CallList::Count(const LogEntry& entry) {
  const Change& change = entry.change;
  if (current_ == kNone || change.edits.empty() || IsInternal(change.op)) {
    return;
  }
  const std::hash<std::string> hash;
  const bool is_revert = change.op == Op::kRevert;
  rows_.push_back({entry.lsn, current_, hash(change.path), entry.count,
                   is_revert ? change.length : 1});
  if (!change.new_path.empty()) {
    rows_.push_back({entry.lsn, current_, hash(change.new_path), 0, 1});
  }
}

void CallList::FindOverlaps() {
  const auto note = [](Call& call, uint64_t number) {
    if (call.overlaps.size() < kMaxOverlaps) call.overlaps.push_back(number);
  };
  for (size_t i = 0; i < calls_.size(); ++i) {
    Call& call = calls_[i];
    if (call.gone || call.end == kNoLsn) continue;
    for (size_t later = i + 1;
         later < calls_.size() && later - i <= kMaxOverlaps &&
         calls_[later].begin < call.end;
         ++later) {
      if (calls_[later].gone) continue;
      note(call, calls_[later].number);
      note(calls_[later], call.number);
    }
  }
}

std::vector<Call> CallList::Finish() && {
  FindOverlaps();
  const auto place = [](const Row& row) {
    return std::pair(row.call, row.path);
  };
  std::ranges::sort(rows_, {}, place);
  for (size_t i = 0; i < rows_.size(); ++i) {
    Call& call = calls_[rows_[i].call];
    call.operations += rows_[i].operations;
    const bool is_new = i == 0 || place(rows_[i - 1]) != place(rows_[i]);
    if (is_new) call.changes += rows_[i].paths;
  }
  return std::move(calls_);
}

// --- what a user means -----------------------------------------------------

namespace {

/// Those of `calls` that `wanted` may mean, the better matches only.
std::vector<const Call*> MatchesOf(const std::vector<Call>& calls,
                                   const std::string& id, bool gone) {
  std::vector<const Call*> matches;
  const auto collect = [&](const auto& fits) {
    if (!matches.empty()) return;
    for (const Call& call : calls) {
      if (call.gone == gone && fits(call)) matches.push_back(&call);
    }
  };
  if (const auto number = NumberIn(id)) {
    collect([&](const Call& call) { return call.number == *number; });
  }
  collect([&](const Call& call) { return call.mark.call == id; });
  collect([&](const Call& call) { return call.mark.call.starts_with(id); });
  return matches;
}

}  // namespace

Result<uint64_t> FindCall(const std::vector<Call>& calls,
                          const std::string& wanted) {
  constexpr const char* kHint = "`txfs log --calls` lists the calls";
  const std::string id = BoundedMark({.call = wanted}).call;
  if (id.empty()) return Fail(ErrorKind::kUsage, 0, "the id is empty", kHint);
  const auto matches = MatchesOf(calls, id, false);
  if (matches.size() > 1) {
    return Fail(0, "several calls have the id \"" + wanted + "\"",
                "name the call by its number; `txfs log --calls` shows it");
  }
  if (!matches.empty()) return matches.front()->number;
  if (!MatchesOf(calls, id, true).empty()) {
    return Fail(0,
                "call \"" + wanted +
                    "\" has no mark any more: a rollback, or the commit or "
                    "discard of a part, dropped it",
                kHint);
  }
  return Fail(0, "the transaction has no call \"" + wanted + "\"", kHint);
}

}  // namespace txfs
