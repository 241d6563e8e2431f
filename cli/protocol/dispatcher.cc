#include "cli/protocol/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "cli/diff/merge.h"
#include "cli/output/paths.h"
#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/change_stream.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {
namespace {

constexpr std::chrono::milliseconds kProgressPeriod{100};

/// Sends frames that say how far it is, not too often. What cannot be sent is
/// not missed: the work goes on.
CommitProgress ProgressFrames(const FrameSink& sink) {
  using Steady = std::chrono::steady_clock;
  return [&sink, next = Steady::time_point()](size_t done, size_t all) mutable {
    if (Steady::now() < next) return;
    next = Steady::now() + kProgressPeriod;
    Frame frame;
    frame.header["progress"] = Json::array({done, all});
    frame.header["more"] = true;
    std::ignore = sink(frame);
  };
}

/// Which log entries a request asks for.
struct LogFilter {
  std::optional<Op> op;
  std::optional<std::string> path;  ///< this and what is below; "" is the root
  bool denied = false;              ///< of denials, not of the log

  [[nodiscard]] bool Takes(const Change& change) const {
    if (IsInternal(change.op)) return false;
    if (op && change.op != *op) return false;
    if (!path || path->empty()) return true;
    // Their paths are names of savepoints.
    if (change.op == Op::kSavepoint || change.op == Op::kRollback ||
        change.op == Op::kRevert) {
      return false;
    }
    return IsWithin(change.path, *path) ||
           (!change.new_path.empty() && IsWithin(change.new_path, *path)) ||
           (!change.because.empty() && IsWithin(change.because, *path));
  }
};

Result<LogFilter> FilterOf(const Json& request) {
  LogFilter filter;
  if (const std::string name = GetBytes(request, "op"); !name.empty()) {
    filter.op = OpFromName(name);
    if (!filter.op || IsInternal(*filter.op)) {
      return Fail(ErrorKind::kUsage, 0,
                  "there is no operation \"" + name + "\"",
                  "txfs(1) lists the names that --op takes");
    }
  }
  if (request.contains("path")) filter.path = GetBytes(request, "path");
  filter.denied = GetBool(request, "denied");
  return filter;
}

}  // namespace

Status Dispatcher::Handle(const Json& request, const FrameSink& sink) {
  return AnswerWith(
      [&](const FrameSink& checked) { return Answer(request, checked); }, sink);
}

Status Dispatcher::Answer(const Json& request, const FrameSink& sink) {
  const std::string name = GetBytes(request, "request");
  // It looks at all commits that there are.
  if (name == "refresh") return AnswerRefresh(sink);
  if (!ReadsListed(request)) {
    TRY(RollForward(workspace_, workspace_.transaction_id(),
                    host_.tell_siblings, sink));
  }
  if (name == "status") return AnswerStatus(request, sink);
  if (name == "conflicts") return AnswerConflicts(sink);
  if (name == "changes") return AnswerChanges(request, sink);
  if (name == "read") return AnswerRead(request, sink);
  if (name == "log") return AnswerLog(request, sink);
  if (name == "workspace") return AnswerWorkspace(sink);
  if (name == "commit") return AnswerCommit(request, sink);
  if (name == "discard") return AnswerDiscard(request, sink);
  if (name == "savepoint") return AnswerSavepoint(request, sink);
  if (name == "rollback") return AnswerRollback(request, sink);
  if (name == "call_mark") return AnswerCallMark(request, sink);
  if (name == "calls") return AnswerCalls(sink);
  if (name == "call") return AnswerCall(request, sink);
  if (name == "revert") return AnswerRevert(request, sink);
  if (name == "plan") return AnswerPlan(request, sink);
  return ArchiveDispatcher(workspace_, workspace_.transaction_id(),
                           host_.tell_siblings)
      .Answer(request, sink);
}

Status Dispatcher::AnswerStatus(const Json& request, const FrameSink& sink) {
  Frame frame;
  if (GetBool(request, "conflicts")) {
    const FullStatus full = TRY(workspace_.GetFullStatus());
    frame.header["status"] = ToJson(full.status);
    if (full.conflicts) {
      frame.header["conflicts"] = ArrayOf(*full.conflicts);
    } else {
      frame.header["unknown"] = ToJson(full.conflicts.error());
    }
  } else {
    frame.header["status"] = ToJson(TRY(workspace_.GetStatus()));
  }
  frame.header["pid"] = host_.pid;
  frame.header["mountpoint"] = EncodeBytes(host_.mountpoint);
  return sink(frame);
}

Status Dispatcher::AnswerConflicts(const FrameSink& sink) {
  Frame frame;
  frame.header["conflicts"] = ArrayOf(TRY(workspace_.FindConflicts()));
  return sink(frame);
}

Status Dispatcher::AnswerChanges(const Json& request, const FrameSink& sink) {
  const auto below = DecodeList(GetMember(request, "below"));
  ChangeSender sender(sink);
  if (request.contains("since")) {
    for (const NetChange& change : TRY(workspace_.ChangesSince(
             GetBytes(request, "since"), GetBytes(request, "until"), below))) {
      TRY(sender.Add(change));
    }
  } else {
    TRY(workspace_.VisitChanges(
        GetBool(request, "expand"), below,
        [&](const NetChange& change) { return sender.Add(change); }));
  }
  return sender.Finish(Json::object());
}

Status Dispatcher::AnswerRead(const Json& request, const FrameSink& sink) {
  const auto read = [&](const Json& item, uint64_t offset,
                        MutableByteSpan out) {
    return ReadSide(item, offset, out);
  };
  return AnswerParts(request, read, sink);
}

Result<size_t> Dispatcher::ReadSide(const Json& item, uint64_t offset,
                                    MutableByteSpan out) {
  if (!item.contains("ino")) {
    return workspace_.ReadBase(GetBytes(item, "base_path"), offset, out);
  }
  const Ino ino{GetUint(item, "ino")};
  if (!item.contains("since")) {
    return workspace_.filesystem().Read(ino, offset, out);
  }
  return workspace_.ReadPast(GetBytes(item, "since"), ino, offset, out);
}

Status Dispatcher::AnswerLog(const Json& request, const FrameSink& sink) {
  const LogFilter filter = TRY(FilterOf(request));
  // "last": only so many, the newest. "count": a page, from "first" on.
  const uint64_t last = GetUint(request, "last");
  const uint64_t count = GetUint(request, "count");
  std::deque<LogEntry> entries;
  const Lsn first{std::max<uint64_t>(GetUint(request, "first"), 1)};
  Lsn next = first;
  bool end = true;
  const std::vector<RunRecord> runs = workspace_.Runs();
  const std::vector<Savepoint> marks = workspace_.CallMarks();
  const auto visit = [&](const LogEntry& entry) {
    if (count != 0 && entries.size() == count) return end = false;
    next = Next(entry.lsn);
    if (!filter.Takes(entry.change)) return true;
    LogEntry kept = entry;
    kept.change.edits.clear();
    const auto run =
        std::ranges::find_if(runs, [&](const RunRecord& candidate) {
          return HasOperation(candidate, entry.lsn);
        });
    if (run != runs.end()) kept.run = run->id;
    kept.call = CallAt(marks, entry.lsn);
    entries.push_back(std::move(kept));
    if (last != 0 && entries.size() > last) entries.pop_front();
    return true;
  };
  uint64_t dropped = 0;
  if (filter.denied) {
    dropped = TRY(VisitDenials(first, visit));
  } else {
    TRY(workspace_.ReadLog(first, visit));
  }
  return SendList(ArrayOf(entries), "entries",
                  {{"next", Raw(next)},
                   {"end", end},
                   {"dropped", dropped},
                   {"transaction", workspace_.transaction_id()}},
                  sink);
}

Result<uint64_t> Dispatcher::VisitDenials(
    Lsn first, const std::function<bool(const LogEntry&)>& visit) {
  const Denials denials = TRY(workspace_.ReadDenials());
  for (const LogEntry& entry : denials.entries) {
    if (entry.lsn >= first && !visit(entry)) break;
  }
  return denials.Dropped();
}

Status Dispatcher::AnswerWorkspace(const FrameSink& sink) {
  Frame frame;
  frame.header["workspace"] = EncodeBytes(workspace_.path());
  frame.header["store"] = EncodeBytes(workspace_.store().display_path());
  frame.descriptor = std::make_shared<UniqueFd>(TRY(workspace_.OpenBase()));
  return sink(frame);
}

Status Dispatcher::AnswerRefresh(const FrameSink& sink) {
  TRY(workspace_.Refresh());
  return sink(Frame{});
}

std::string Dispatcher::NextId() const {
  return host_.has_next ? workspace_.transaction_id() : "";
}

void Dispatcher::Announce() {
  if (host_.announce) host_.announce();
  // Until then nobody could tell us of what he committed. That we may still not
  // know of it, the next command says.
  std::ignore = workspace_.CatchUp();
}

void Dispatcher::AddMoved(Frame& frame) {
  frame.header["moved"] = EncodeList(workspace_.TakeMoved());
}

Status Dispatcher::AnswerCommit(const Json& request, const FrameSink& sink) {
  Frame frame;
  const CommitOptions options{
      .message = GetBytes(request, "message"),
      .paths = DecodeList(GetMember(request, "paths")),
      .except = DecodeList(GetMember(request, "except")),
      .conflicts = {.on_conflict =
                        OnConflictFromName(GetBytes(request, "on_conflict")),
                    .merge = MergeTexts,
                    .markers = GetBool(request, "markers")},
      .accepted = DecodeList(GetMember(request, "accepted")),
      .accepted_paths = DecodeList(GetMember(request, "accepted_paths")),
      .without_held = GetBool(request, "without_held")};
  const auto report = workspace_.Commit(options, ProgressFrames(sink));
  Announce();
  // Nobody is to see the old base once the commit is reported; an error may be
  // that of the rest, when a part was finished. What is half-way is not to be
  // looked at.
  const bool changed = report ? report->committed() || !report->finished.empty()
                              : !workspace_.store().history().HasIntent();
  if (changed && host_.tell_siblings) {
    host_.tell_siblings(workspace_.store(), workspace_.transaction_id());
  }
  if (!report) return std::unexpected(report.error());
  frame.header["report"] = ToJson(*report);
  frame.header["next"] = NextId();
  AddMoved(frame);
  return sink(frame);
}

Status Dispatcher::AnswerPlan(const Json& request, const FrameSink& sink) {
  const PlanRequest plan{
      .paths = DecodeList(GetMember(request, "paths")),
      .accepted = DecodeList(GetMember(request, "accepted")),
      .accepted_paths = DecodeList(GetMember(request, "accepted_paths")),
      .without_held = GetBool(request, "without_held"),
      .all_held = GetBool(request, "all_held")};
  Frame frame;
  frame.header["report"] = ToJson(TRY(workspace_.PlanOnly(plan)));
  return sink(frame);
}

Status Dispatcher::AnswerDiscard(const Json& request, const FrameSink& sink) {
  Frame frame;
  if (const auto paths = DecodeList(GetMember(request, "paths"));
      !paths.empty()) {
    frame.header["id"] = workspace_.transaction_id();
    const PartDiscard discarded = TRY(workspace_.DiscardPart(paths));
    frame.header["changes"] = discarded.changes;
    frame.header["savepoints"] = EncodeList(discarded.savepoints);
    frame.header["next"] = NextId();
    AddMoved(frame);
    return sink(frame);
  }
  const DiscardReport report = TRY(workspace_.Discard());
  Announce();
  frame.header["id"] = report.id;
  frame.header["changes"] = report.changes;
  frame.header["next"] = NextId();
  AddMoved(frame);
  return sink(frame);
}

Status Dispatcher::AnswerSavepoint(const Json& request, const FrameSink& sink) {
  Frame frame;
  frame.header["savepoint"] =
      ToJson(TRY(workspace_.MakeSavepoint(GetBytes(request, "name"))));
  return sink(frame);
}

Status Dispatcher::AnswerRollback(const Json& request, const FrameSink& sink) {
  const RollbackReport report =
      TRY(workspace_.Rollback(GetBytes(request, "name")));
  Frame frame;
  frame.header["savepoint"] = ToJson(report.savepoint);
  frame.header["undone"] = report.undone;
  AddMoved(frame);
  return sink(frame);
}

Status Dispatcher::AnswerCallMark(const Json& request, const FrameSink& sink) {
  Frame frame;
  frame.header["number"] =
      TRY(workspace_.MarkCall(CallMarkFromJson(GetMember(request, "mark"))));
  return sink(frame);
}

Status Dispatcher::AnswerCalls(const FrameSink& sink) {
  return SendList(ArrayOf(TRY(workspace_.Calls())), "calls", Json::object(),
                  sink);
}

Status Dispatcher::AnswerCall(const Json& request, const FrameSink& sink) {
  const CallSpan span = TRY(workspace_.FindSpan(GetBytes(request, "id")));
  Frame frame;
  frame.header["number"] = span.number;
  frame.header["since"] = EncodeBytes(span.since.name);
  frame.header["until"] = EncodeBytes(span.until ? span.until->name : "");
  return sink(frame);
}

Status Dispatcher::AnswerRevert(const Json& request, const FrameSink& sink) {
  const RevertReport report =
      TRY(workspace_.RevertCall(GetBytes(request, "id")));
  Frame frame;
  frame.header["number"] = report.number;
  frame.header["as"] = report.as;
  frame.header["changes"] = report.changes;
  frame.header["built_on"] = ArrayOf(report.built_on);
  AddMoved(frame);
  return sink(frame);
}

}  // namespace txfs::cli
