#include "cli/protocol/wire.h"

#include <array>

#include "journal/support/names.h"

namespace txfs::cli {
namespace {

using NamedOnConflict = Named<OnConflict>;
constexpr std::array kOnConflictNames = {
    NamedOnConflict{OnConflict::kFail, "fail"},
    NamedOnConflict{OnConflict::kMine, "mine"},
    NamedOnConflict{OnConflict::kTheirs, "theirs"},
    NamedOnConflict{OnConflict::kMerge, "merge"},
};

Json TimeToJson(Timestamp time) { return Json::array({time.sec, time.nsec}); }

Timestamp TimeFromJson(const Json& object, const char* key) {
  const Json& pair = GetMember(object, key);
  if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number_integer() ||
      !pair[1].is_number_unsigned()) {
    return {};
  }
  const auto nsec = pair[1].get<uint64_t>();
  if (nsec >= 1'000'000'000) return {};
  return {.sec = pair[0].get<int64_t>(), .nsec = static_cast<uint32_t>(nsec)};
}

Json DeltaToJson(const std::optional<Delta>& delta) {
  if (!delta) return nullptr;
  Json ranges = Json::array();
  for (const Range& range : delta->ranges) {
    ranges.push_back(Json::array({range.from, range.to}));
  }
  return {{"name", EncodeBytes(delta->name)},
          {"keep", delta->keep},
          {"size", delta->size},
          {"ranges", std::move(ranges)}};
}

std::optional<Delta> DeltaFromJson(const Json& side) {
  const Json& json = GetMember(side, "delta");
  if (!json.is_object()) return std::nullopt;
  Delta delta{.name = GetBytes(json, "name"),
              .keep = GetUint(json, "keep"),
              .size = GetUint(json, "size")};
  for (const Json& range : GetMember(json, "ranges")) {
    const bool is_range = range.is_array() && range.size() == 2 &&
                          range[0].is_number_unsigned() &&
                          range[1].is_number_unsigned();
    const uint64_t end = delta.ranges.empty() ? 0 : delta.ranges.back().to;
    if (!is_range || range[0].get<uint64_t>() < end ||
        range[1].get<uint64_t>() < range[0].get<uint64_t>()) {
      continue;
    }
    delta.ranges.push_back(
        {range[0].get<uint64_t>(), range[1].get<uint64_t>()});
  }
  return delta;
}

/// 0 of what is too large, too.
uint32_t Get32(const Json& json, const char* key) {
  const uint64_t value = GetUint(json, key);
  return value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

TransactionState StateFromJson(const Json& json) {
  return StateFromName(GetBytes(json, "state"))
      .value_or(TransactionState::kActive);
}

}  // namespace

Json EndedSideToJson(const ChangeSide& side) {
  if (!side.vault_path.empty()) {
    return {{"vault_path", EncodeBytes(side.vault_path)}};
  }
  return {{"base_path", EncodeBytes(side.base_path)},
          {"delta", DeltaToJson(side.delta)}};
}

ChangeSide EndedSideFromJson(const Json& request) {
  return {.base_path = GetBytes(request, "base_path"),
          .vault_path = GetBytes(request, "vault_path"),
          .delta = DeltaFromJson(request)};
}

Json EncodeList(const std::vector<std::string>& list) {
  Json json = Json::array();
  for (const std::string& item : list) json.push_back(EncodeBytes(item));
  return json;
}

std::vector<std::string> DecodeList(const Json& json) {
  std::vector<std::string> list;
  for (const Json& item : json) list.push_back(DecodeBytes(item));
  return list;
}

Json ToJson(const Error& error) {
  return {{"code", error.code},
          {"message", EncodeBytes(error.message)},
          {"hint", EncodeBytes(error.hint)},
          {"kind", static_cast<unsigned>(error.kind)}};
}

Error ErrorFromJson(const Json& json) {
  Error error{.code = static_cast<int>(GetInt(json, "code")),
              .message = GetBytes(json, "message"),
              .hint = GetBytes(json, "hint"),
              .kind = ErrorKind::kFailed};
  const uint64_t kind = GetUint(json, "kind");
  if (kind >= 1 && kind <= 6) error.kind = static_cast<ErrorKind>(kind);
  return error;
}

Json ToJson(const LogEntry& entry) {
  const Change& change = entry.change;
  Json json = {{"lsn", Raw(entry.lsn)},
               {"time", TimeToJson(change.time)},
               {"pid", change.pid},
               {"uid", change.uid},
               {"op", static_cast<unsigned>(change.op)},
               {"offset", change.offset},
               {"length", change.length},
               {"result", change.result},
               {"count", entry.count}};
  // Most entries have few of these, and there may be a million entries.
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = EncodeBytes(text);
  };
  add("exe", change.exe);
  add("path", change.path);
  add("new_path", change.new_path);
  add("rule", change.rule);
  add("reason", change.reason);
  add("suggest", change.suggest);
  add("because", change.because);
  add("run", entry.run);
  if (entry.call != 0) json["call"] = entry.call;
  if (entry.first != Timestamp()) json["first"] = TimeToJson(entry.first);
  return json;
}

LogEntry LogEntryFromJson(const Json& json) {
  LogEntry entry;
  entry.lsn = Lsn{GetUint(json, "lsn")};
  entry.change.time = TimeFromJson(json, "time");
  entry.change.pid = Get32(json, "pid");
  entry.change.uid = Get32(json, "uid");
  entry.change.exe = GetBytes(json, "exe");
  const uint64_t op = GetUint(json, "op");
  if (op <= UINT8_MAX && OpName(static_cast<Op>(op)) != "unknown") {
    entry.change.op = static_cast<Op>(op);
  }
  entry.change.path = GetBytes(json, "path");
  entry.change.new_path = GetBytes(json, "new_path");
  entry.change.offset = GetUint(json, "offset");
  entry.change.length = GetUint(json, "length");
  entry.change.result = static_cast<int32_t>(GetInt(json, "result"));
  entry.change.rule = GetBytes(json, "rule");
  entry.change.reason = GetBytes(json, "reason");
  entry.change.suggest = GetBytes(json, "suggest");
  entry.change.because = GetBytes(json, "because");
  entry.count = GetUint(json, "count");
  entry.first = TimeFromJson(json, "first");
  entry.run = GetBytes(json, "run");
  entry.call = GetUint(json, "call");
  return entry;
}

Json ToJson(const Savepoint& savepoint) {
  return {{"name", EncodeBytes(savepoint.name)},
          {"lsn", Raw(savepoint.lsn)},
          {"time", TimeToJson(savepoint.time)}};
}

Savepoint SavepointFromJson(const Json& json) {
  return {.name = GetBytes(json, "name"),
          .lsn = Lsn{GetUint(json, "lsn")},
          .time = TimeFromJson(json, "time")};
}

Json ToJson(const CallMark& mark) {
  return {{"host", EncodeBytes(mark.host)},
          {"session", EncodeBytes(mark.session)},
          {"turn", EncodeBytes(mark.turn)},
          {"call", EncodeBytes(mark.call)},
          {"agent", EncodeBytes(mark.agent)},
          {"tool", EncodeBytes(mark.tool)},
          {"command", EncodeBytes(mark.command)},
          {"end", mark.end}};
}

CallMark CallMarkFromJson(const Json& json) {
  return {.host = GetBytes(json, "host"),
          .session = GetBytes(json, "session"),
          .turn = GetBytes(json, "turn"),
          .call = GetBytes(json, "call"),
          .agent = GetBytes(json, "agent"),
          .tool = GetBytes(json, "tool"),
          .command = GetBytes(json, "command"),
          .end = GetBool(json, "end")};
}

Json ToJson(const Call& call) {
  return {{"number", call.number},
          {"mark", ToJson(call.mark)},
          {"begin", Raw(call.begin)},
          {"end", Raw(call.end)},
          {"began", TimeToJson(call.began)},
          {"ended", TimeToJson(call.ended)},
          {"gone", call.gone},
          {"operations", call.operations},
          {"changes", call.changes},
          {"overlaps", call.overlaps}};
}

Call CallFromJson(const Json& json) {
  Call call{.number = GetUint(json, "number"),
            .mark = CallMarkFromJson(GetMember(json, "mark")),
            .begin = Lsn{GetUint(json, "begin")},
            .end = Lsn{GetUint(json, "end")},
            .began = TimeFromJson(json, "began"),
            .ended = TimeFromJson(json, "ended"),
            .gone = GetBool(json, "gone"),
            .operations = GetUint(json, "operations"),
            .changes = GetUint(json, "changes"),
            .overlaps = {}};
  for (const Json& number : GetMember(json, "overlaps")) {
    if (!number.is_number_unsigned()) continue;
    call.overlaps.push_back(number.get<uint64_t>());
  }
  return call;
}

Json ToJson(const RuleCount& denied) {
  return {{"rule", EncodeBytes(denied.rule)}, {"count", denied.count}};
}

std::vector<RuleCount> DeniedFromJson(const Json& object) {
  std::vector<RuleCount> list;
  for (const Json& denied : GetMember(object, "denied")) {
    list.push_back({GetBytes(denied, "rule"), GetUint(denied, "count")});
  }
  return list;
}

Json ToJson(const WorkspaceStatus& status) {
  return {{"id", status.id},
          {"name", EncodeBytes(status.name)},
          {"workspace", EncodeBytes(status.workspace)},
          {"store", EncodeBytes(status.store)},
          {"state", StateName(status.state)},
          {"created", TimeToJson(status.created)},
          {"changes", status.changes},
          {"operations", status.operations},
          {"store_bytes", status.store_bytes},
          {"savepoints", ArrayOf(status.savepoints)},
          {"calls", status.calls},
          {"denied", ArrayOf(status.denied)}};
}

WorkspaceStatus WorkspaceStatusFromJson(const Json& json) {
  std::vector<Savepoint> savepoints;
  for (const Json& savepoint : GetMember(json, "savepoints")) {
    savepoints.push_back(SavepointFromJson(savepoint));
  }
  return {.id = GetBytes(json, "id"),
          .name = GetBytes(json, "name"),
          .workspace = GetBytes(json, "workspace"),
          .store = GetBytes(json, "store"),
          .state = StateFromJson(json),
          .created = TimeFromJson(json, "created"),
          .changes = GetUint(json, "changes"),
          .operations = GetUint(json, "operations"),
          .store_bytes = GetUint(json, "store_bytes"),
          .savepoints = std::move(savepoints),
          .calls = GetUint(json, "calls"),
          .denied = DeniedFromJson(json)};
}

std::string_view OnConflictName(OnConflict on_conflict) {
  return NameIn(kOnConflictNames, on_conflict);
}

OnConflict OnConflictFromName(std::string_view name) {
  return ValueIn(kOnConflictNames, name).value_or(OnConflict::kFail);
}

Json ToJson(const Conflict& conflict) {
  return {{"path", EncodeBytes(conflict.path)},
          {"reason", EncodeBytes(conflict.reason)},
          {"ours", EncodeBytes(conflict.ours)},
          {"note", EncodeBytes(conflict.note)}};
}

Json ToJson(const BuiltOn& built_on) {
  return {{"path", EncodeBytes(built_on.path)},
          {"reason", EncodeBytes(built_on.reason)},
          {"calls", built_on.calls}};
}

std::vector<BuiltOn> BuiltOnFromJson(const Json& object) {
  std::vector<BuiltOn> all;
  for (const Json& json : GetMember(object, "built_on")) {
    BuiltOn& built_on = all.emplace_back();
    built_on.path = GetBytes(json, "path");
    built_on.reason = GetBytes(json, "reason");
    for (const Json& call : GetMember(json, "calls")) {
      if (call.is_number_unsigned()) {
        built_on.calls.push_back(call.get<uint64_t>());
      }
    }
  }
  return all;
}

std::vector<Conflict> ConflictsFromJson(const Json& object, const char* key) {
  std::vector<Conflict> conflicts;
  for (const Json& conflict : GetMember(object, key)) {
    conflicts.push_back({.path = GetBytes(conflict, "path"),
                         .reason = GetBytes(conflict, "reason"),
                         .ours = GetBytes(conflict, "ours"),
                         .note = GetBytes(conflict, "note")});
  }
  return conflicts;
}

Json ToJson(const LimitExcess& limit) {
  Json json = {{"id", EncodeBytes(limit.id)},
               {"of", policy::NameOf(limit.of)},
               {"count", limit.count},
               {"allowance", EncodeBytes(limit.allowance)},
               {"reason", EncodeBytes(limit.reason)},
               {"suggest", EncodeBytes(limit.suggest)},
               {"refuses", limit.refuses},
               {"accepted", limit.accepted}};
  if (limit.total) json["total"] = *limit.total;
  return json;
}

std::vector<LimitExcess> LimitsFromJson(const Json& object) {
  std::vector<LimitExcess> limits;
  for (const Json& limit : GetMember(object, "limits")) {
    LimitExcess excess{.id = GetBytes(limit, "id"),
                       .of = policy::MeasureNamed(GetBytes(limit, "of"))
                                 .value_or(policy::Measure::kBaseRemoved),
                       .count = GetUint(limit, "count"),
                       .allowance = GetBytes(limit, "allowance"),
                       .reason = GetBytes(limit, "reason"),
                       .suggest = GetBytes(limit, "suggest"),
                       .refuses = GetBool(limit, "refuses"),
                       .accepted = GetBool(limit, "accepted")};
    if (limit.contains("total")) excess.total = GetUint(limit, "total");
    limits.push_back(std::move(excess));
  }
  return limits;
}

Json ToJson(const HeldChange& held) {
  return {{"path", EncodeBytes(held.path)},
          {"old_path", EncodeBytes(held.old_path)},
          {"change", EncodeBytes(held.change)},
          {"rule", EncodeBytes(held.rule)},
          {"reason", EncodeBytes(held.reason)},
          {"suggest", EncodeBytes(held.suggest)},
          {"lines", EncodeList(held.lines)},
          {"more_lines", held.more_lines},
          {"accepted", held.accepted}};
}

Json ToJson(const HeldRest& rest) {
  return {{"rule", EncodeBytes(rest.rule)},
          {"open", rest.open},
          {"accepted", rest.accepted}};
}

Json ToJson(const HeldReport& held) {
  return {{"changes", ArrayOf(held.changes)},
          {"more", ArrayOf(held.more)},
          {"left", held.left}};
}

namespace {

/// A daemon from before an upgrade holds nothing.
HeldReport HeldFromJson(const Json& object) {
  HeldReport report;
  if (!object.contains("held")) return report;
  const Json& held = GetMember(object, "held");
  for (const Json& each : GetMember(held, "changes")) {
    report.changes.push_back({.path = GetBytes(each, "path"),
                              .old_path = GetBytes(each, "old_path"),
                              .change = GetBytes(each, "change"),
                              .rule = GetBytes(each, "rule"),
                              .reason = GetBytes(each, "reason"),
                              .suggest = GetBytes(each, "suggest"),
                              .lines = DecodeList(GetMember(each, "lines")),
                              .more_lines = GetUint(each, "more_lines"),
                              .accepted = GetBool(each, "accepted")});
  }
  for (const Json& each : GetMember(held, "more")) {
    report.more.push_back({.rule = GetBytes(each, "rule"),
                           .open = GetUint(each, "open"),
                           .accepted = GetUint(each, "accepted")});
  }
  report.left = GetBool(held, "left");
  return report;
}

}  // namespace

Json ToJson(const CommitReport& report) {
  return {{"id", report.id},
          {"partial", report.partial},
          {"finished", report.finished},
          {"nothing", report.nothing},
          {"changes", report.changes},
          {"conflicts", ArrayOf(report.conflicts)},
          {"depends", EncodeBytes(report.depends)},
          {"limits", ArrayOf(report.limits)},
          {"held", ToJson(report.held)},
          {"resolved", ArrayOf(report.resolved)},
          {"withheld", EncodeList(report.withheld)},
          {"savepoints", EncodeList(report.savepoints)},
          {"denied", ArrayOf(report.denied)}};
}

CommitReport CommitReportFromJson(const Json& json) {
  return {
      .id = GetBytes(json, "id"),
      .partial = GetBool(json, "partial"),
      // A daemon from before an upgrade does not say it.
      .finished = json.contains("finished") ? GetBytes(json, "finished") : "",
      .nothing = GetBool(json, "nothing"),
      .changes = GetUint(json, "changes"),
      .conflicts = ConflictsFromJson(json, "conflicts"),
      .depends = json.contains("depends") ? GetBytes(json, "depends") : "",
      .limits = LimitsFromJson(json),
      .held = HeldFromJson(json),
      .resolved = ConflictsFromJson(json, "resolved"),
      .withheld = DecodeList(GetMember(json, "withheld")),
      .savepoints = DecodeList(GetMember(json, "savepoints")),
      .denied = DeniedFromJson(json)};
}

Json ToJson(const PlanReport& report) {
  return {{"id", report.id},
          {"changes", report.changes},
          {"steps", EncodeList(report.steps)},
          {"conflicts", ArrayOf(report.conflicts)},
          {"limits", ArrayOf(report.limits)},
          {"held", ToJson(report.held)},
          {"withheld", EncodeList(report.withheld)}};
}

PlanReport PlanReportFromJson(const Json& json) {
  return {.id = GetBytes(json, "id"),
          .changes = GetUint(json, "changes"),
          .steps = DecodeList(GetMember(json, "steps")),
          .conflicts = ConflictsFromJson(json, "conflicts"),
          .limits = LimitsFromJson(json),
          .held = HeldFromJson(json),
          .withheld = DecodeList(GetMember(json, "withheld"))};
}

Json ToJson(const UndoReport& report) {
  return {{"id", report.id},
          {"undone", report.undone},
          {"changes", report.changes},
          {"conflicts", ArrayOf(report.conflicts)}};
}

UndoReport UndoReportFromJson(const Json& json) {
  return {.id = GetBytes(json, "id"),
          .undone = GetBytes(json, "undone"),
          .changes = GetUint(json, "changes"),
          .conflicts = ConflictsFromJson(json, "conflicts")};
}

Json ToJson(const RunRecord& run) {
  return {{"id", EncodeBytes(run.id)},
          {"command", EncodeList(run.command)},
          {"is_cut", run.is_cut},
          {"profile", EncodeBytes(run.profile)},
          {"outcome", OutcomeName(run.outcome)},
          {"why", EncodeBytes(run.why)},
          {"code", run.code},
          {"begin", TimeToJson(run.begin)},
          {"milliseconds", run.milliseconds}};
}

RunRecord RunFromJson(const Json& json) {
  RunRecord run;
  run.id = GetBytes(json, "id");
  run.command = DecodeList(GetMember(json, "command"));
  run.is_cut = GetBool(json, "is_cut");
  run.profile = GetBytes(json, "profile");
  run.outcome = OutcomeFromName(GetBytes(json, "outcome"));
  run.why = GetBytes(json, "why");
  run.code = Get32(json, "code");
  run.begin = TimeFromJson(json, "begin");
  run.milliseconds = GetUint(json, "milliseconds");
  return Bounded(std::move(run));
}

Json ToJson(const TransactionSummary& summary) {
  return {{"id", summary.id},
          {"name", EncodeBytes(summary.name)},
          {"state", StateName(summary.state)},
          {"created", TimeToJson(summary.created)},
          {"ended", TimeToJson(summary.ended)},
          {"message", EncodeBytes(summary.message)},
          {"changes", summary.changes},
          {"kind", KindName(summary.kind)},
          {"author", EncodeBytes(summary.author)},
          {"of", summary.of},
          {"undone_by", summary.undone_by},
          {"denied", ArrayOf(summary.denied)},
          {"runs", ArrayOf(summary.runs)},
          {"undoable", summary.undoable}};
}

TransactionSummary SummaryFromJson(const Json& json) {
  std::vector<RunRecord> runs;
  for (const Json& run : GetMember(json, "runs")) {
    runs.push_back(RunFromJson(run));
  }
  return {.id = GetBytes(json, "id"),
          .name = GetBytes(json, "name"),
          .state = StateFromJson(json),
          .kind = KindFromName(GetBytes(json, "kind"))
                      .value_or(TransactionKind::kWhole),
          .created = TimeFromJson(json, "created"),
          .ended = TimeFromJson(json, "ended"),
          .message = GetBytes(json, "message"),
          .author = GetBytes(json, "author"),
          .changes = GetUint(json, "changes"),
          .of = GetBytes(json, "of"),
          .undone_by = GetBytes(json, "undone_by"),
          .denied = DeniedFromJson(json),
          .runs = std::move(runs),
          .undoable = GetBool(json, "undoable")};
}

Json ToJson(const policy::SourceText& source) {
  return {{"file", EncodeBytes(source.file)},
          {"text", EncodeBytes(source.text)}};
}

policy::SourceText SourceTextFromJson(const Json& json) {
  return {.file = GetBytes(json, "file"), .text = GetBytes(json, "text")};
}

}  // namespace txfs::cli
