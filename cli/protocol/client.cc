#include "cli/protocol/client.h"

#include "cli/protocol/change_stream.h"
#include "cli/protocol/content_request.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {

namespace {

StatusReply StatusReplyFromJson(const Json& header) {
  return {.status = WorkspaceStatusFromJson(GetMember(header, "status")),
          .pid = static_cast<uint32_t>(GetUint(header, "pid")),
          .mountpoint = GetBytes(header, "mountpoint")};
}

}  // namespace

Result<StatusReply> Client::GetStatus() {
  const Frame reply = TRY(connection_->Call({{"request", "status"}}));
  return StatusReplyFromJson(reply.header);
}

Result<Client::FullReply> Client::GetFullStatus() {
  const Frame reply =
      TRY(connection_->Call({{"request", "status"}, {"conflicts", true}}));
  FullReply full{StatusReplyFromJson(reply.header), std::vector<Conflict>()};
  const Json& unknown = GetMember(reply.header, "unknown");
  if (unknown.is_object()) {
    full.conflicts = std::unexpected(ErrorFromJson(unknown));
  } else if (reply.header.contains("conflicts")) {
    full.conflicts = ConflictsFromJson(reply.header, "conflicts");
  } else {
    full.conflicts = FindConflicts();  // the daemon is of an older version
  }
  return full;
}

Result<std::map<std::string, uint64_t>> Client::GetRequests() {
  const Frame reply = TRY(connection_->Call({{"request", "requests"}}));
  std::map<std::string, uint64_t> requests;
  for (const auto& [name, count] :
       GetMember(reply.header, "requests").items()) {
    if (count.is_number_unsigned()) requests[name] = count.get<uint64_t>();
  }
  return requests;
}

Result<std::vector<Conflict>> Client::FindConflicts() {
  const Frame reply = TRY(connection_->Call({{"request", "conflicts"}}));
  return ConflictsFromJson(reply.header, "conflicts");
}

Result<std::vector<NetChange>> Client::Changes(
    bool expand, const std::vector<std::string>& below,
    const std::optional<std::string>& since, const std::string& until) {
  Json request = {
      {"request", "changes"}, {"expand", expand}, {"below", EncodeList(below)}};
  if (since) {
    request["since"] = EncodeBytes(*since);
    request["until"] = EncodeBytes(until);
  }
  ChangeReceiver changes;
  TRY(connection_->Call(request, [&](const Frame& frame) {
    return changes.Take(frame.payload);
  }));
  return changes.Finish();
}

namespace {

/// The item of a request for content of a side of a change.
Json ReadItemOf(const WantedSide& wanted,
                const std::optional<std::string>& since,
                const std::string& until) {
  const auto& [side, before] = wanted;
  Json item;
  // What the transaction did not touch is read where the base has it.
  if (side->ino == kNoIno || (before && !since)) {
    item["base_path"] = EncodeBytes(side->base_path);
  } else {
    item["ino"] = Raw(side->ino);
    const std::string& then = before ? *since : until;
    if (!then.empty()) item["since"] = EncodeBytes(then);
  }
  return item;
}

}  // namespace

Result<Contents> Client::ReadContents(std::span<const WantedSide> sides,
                                      uint64_t limit,
                                      const std::optional<std::string>& since,
                                      const std::string& until) {
  return ContentRequest(*connection_, "read",
                        [&](const WantedSide& wanted, uint64_t, uint64_t) {
                          return ReadItemOf(wanted, since, until);
                        })
      .ReadWhole(sides, limit);
}

Result<std::vector<Status>> Client::ProbeContents(
    std::span<const WantedSide> sides, const std::optional<std::string>& since,
    const std::string& until) {
  return ContentRequest(*connection_, "read",
                        [&](const WantedSide& wanted, uint64_t, uint64_t) {
                          return ReadItemOf(wanted, since, until);
                        })
      .Probe(sides);
}

Result<CommitReply> Client::Commit(const CommitRequest& request,
                                   const CommitProgress& progress) {
  CommitReply commit;
  TRY(connection_->Call(
      {{"request", "commit"},
       {"message", EncodeBytes(request.message)},
       {"paths", EncodeList(request.paths)},
       {"on_conflict", OnConflictName(request.on_conflict)},
       {"markers", request.markers},
       {"accepted", EncodeList(request.accepted)},
       {"accepted_paths", EncodeList(request.accepted_paths)},
       {"without_held", request.without_held}},
      [&](const Frame& frame) -> Status {
        const Json& step = GetMember(frame.header, "progress");
        const bool is_step = step.is_array() && step.size() == 2 &&
                             step[0].is_number_unsigned() &&
                             step[1].is_number_unsigned();
        if (is_step && progress) {
          progress(step[0].get<size_t>(), step[1].get<size_t>());
        }
        commit.report = CommitReportFromJson(GetMember(frame.header, "report"));
        commit.next = GetBytes(frame.header, "next");
        moved_ = DecodeList(GetMember(frame.header, "moved"));
        return {};
      }));
  return commit;
}

Result<PlanReport> Client::Plan(const PlanRequest& request) {
  const Frame reply = TRY(
      connection_->Call({{"request", "plan"},
                         {"paths", EncodeList(request.paths)},
                         {"accepted", EncodeList(request.accepted)},
                         {"accepted_paths", EncodeList(request.accepted_paths)},
                         {"without_held", request.without_held},
                         {"all_held", request.all_held}}));
  return PlanReportFromJson(GetMember(reply.header, "report"));
}

Result<RunBegun> Client::BeginRun(const RunRequest& request) {
  const Frame reply =
      TRY(connection_->Call({{"request", "run_begin"},
                             {"id", EncodeBytes(request.id)},
                             {"own", request.own},
                             {"command", EncodeList(request.command)},
                             {"profile", EncodeBytes(request.profile)},
                             {"clean", request.clean},
                             {"disk", request.limits.bytes},
                             {"files", request.limits.objects}}));
  if (request.limits.any() && !reply.descriptor) {
    return Fail(0, "the daemon cannot tell when a limit is exceeded");
  }
  return RunBegun{.savepoint = GetBytes(reply.header, "savepoint"),
                  .changes = GetUint(reply.header, "changes"),
                  .fresh = GetBool(reply.header, "fresh"),
                  .limit_signal = reply.descriptor};
}

Status Client::StartRun(pid_t pid) {
  TRY(connection_->Call({{"request", "run_start"}, {"pid", pid}}));
  return {};
}

Status Client::AnnounceGroups(const std::vector<std::string>& groups) {
  TRY(connection_->Call(
      {{"request", "run_start"}, {"groups", EncodeList(groups)}}));
  return {};
}

Status Client::AnnounceSocket(const std::string& path) {
  TRY(connection_->Call(
      {{"request", "run_start"}, {"socket", EncodeBytes(path)}}));
  return {};
}

Status Client::AnnouncePipe(uint64_t inode) {
  TRY(connection_->Call({{"request", "run_start"}, {"pipe", inode}}));
  return {};
}

Status Client::SettleRun(const RunVerdict& verdict, bool done) {
  TRY(connection_->Call({{"request", "run_settle"},
                         {"outcome", OutcomeName(verdict.outcome)},
                         {"why", EncodeBytes(verdict.why)},
                         {"code", verdict.code},
                         {"done", done}}));
  return {};
}

Status Client::EndRun() {
  TRY(connection_->Call({{"request", "run_end"}}));
  return {};
}

Result<UndoReport> Client::Undo(const std::string& id) {
  const Frame reply =
      TRY(connection_->Call({{"request", "undo"}, {"transaction", id}}));
  return UndoReportFromJson(GetMember(reply.header, "report"));
}

Result<CommitView> Client::Show(const std::string& id) {
  CommitView view;
  ChangeReceiver changes;
  TRY(connection_->Call(
      {{"request", "show"}, {"transaction", id}},
      [&](const Frame& frame) -> Status {
        view.summary = SummaryFromJson(GetMember(frame.header, "transaction"));
        view.has_changes = GetBool(frame.header, "has_changes");
        view.lost = ConflictsFromJson(frame.header, "lost");
        return changes.Take(frame.payload);
      }));
  view.changes = TRY(changes.Finish());
  return view;
}

namespace {

/// The item of a request for a part of a side of a change of an ended commit.
/// It has the ranges of this part: a patch may have very many.
Json ReadEndedItem(const WantedSide& wanted, uint64_t offset, uint64_t length) {
  ChangeSide side = *wanted.side;
  if (side.delta) {
    std::erase_if(side.delta->ranges, [&](const Range& range) {
      return range.to <= offset || range.from >= offset + length;
    });
  }
  return EndedSideToJson(side);
}

}  // namespace

Result<Contents> Client::ReadEnded(std::span<const WantedSide> sides,
                                   uint64_t limit) {
  return ContentRequest(*connection_, "read_ended", ReadEndedItem)
      .ReadWhole(sides, limit);
}

Result<std::vector<Status>> Client::ProbeEnded(
    std::span<const WantedSide> sides) {
  return ContentRequest(*connection_, "read_ended", ReadEndedItem).Probe(sides);
}

Result<GcReport> Client::CollectGarbage(std::optional<uint64_t> keep_commits,
                                        std::optional<uint64_t> keep_bytes) {
  Json request = {{"request", "gc"}};
  if (keep_commits) request["commits"] = *keep_commits;
  if (keep_bytes) request["bytes"] = *keep_bytes;
  const Frame reply = TRY(connection_->Call(request));
  return GcReport{.commits = GetUint(reply.header, "commits"),
                  .bytes = GetUint(reply.header, "bytes"),
                  .forgotten = GetUint(reply.header, "forgotten")};
}

Result<DiscardReply> Client::Discard(const std::vector<std::string>& paths) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "discard"}, {"paths", EncodeList(paths)}}));
  moved_ = DecodeList(GetMember(reply.header, "moved"));
  return DiscardReply{
      .id = GetBytes(reply.header, "id"),
      .changes = GetUint(reply.header, "changes"),
      .next = GetBytes(reply.header, "next"),
      .savepoints = DecodeList(GetMember(reply.header, "savepoints"))};
}

Result<Savepoint> Client::MakeSavepoint(const std::string& name) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "savepoint"}, {"name", EncodeBytes(name)}}));
  return SavepointFromJson(GetMember(reply.header, "savepoint"));
}

Result<RollbackReport> Client::Rollback(const std::string& name) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "rollback"}, {"name", EncodeBytes(name)}}));
  moved_ = DecodeList(GetMember(reply.header, "moved"));
  return RollbackReport{
      .savepoint = SavepointFromJson(GetMember(reply.header, "savepoint")),
      .undone = GetUint(reply.header, "undone")};
}

Result<uint64_t> Client::MarkCall(const CallMark& mark) {
  // Long texts are cut there, too.
  const Frame reply = TRY(connection_->Call(
      {{"request", "call_mark"}, {"mark", ToJson(BoundedMark(mark))}}));
  return GetUint(reply.header, "number");
}

Result<std::vector<Call>> Client::Calls() {
  std::vector<Call> calls;
  TRY(connection_->Call(
      {{"request", "calls"}}, [&](const Frame& frame) -> Status {
        for (const Json& call : GetMember(frame.header, "calls")) {
          calls.push_back(CallFromJson(call));
        }
        return {};
      }));
  return calls;
}

Result<CallBounds> Client::FindCallBounds(const std::string& id) {
  const Frame reply =
      TRY(connection_->Call({{"request", "call"}, {"id", EncodeBytes(id)}}));
  return CallBounds{.number = GetUint(reply.header, "number"),
                    .since = GetBytes(reply.header, "since"),
                    .until = GetBytes(reply.header, "until")};
}

Result<RevertReport> Client::RevertCall(const std::string& id) {
  const Frame reply =
      TRY(connection_->Call({{"request", "revert"}, {"id", EncodeBytes(id)}}));
  moved_ = DecodeList(GetMember(reply.header, "moved"));
  return RevertReport{.number = GetUint(reply.header, "number"),
                      .as = GetUint(reply.header, "as"),
                      .changes = GetUint(reply.header, "changes"),
                      .built_on = BuiltOnFromJson(reply.header)};
}

Result<LogReply> Client::Log(const LogQuery& query) {
  Json request = {{"request", "log"},
                  {"first", query.first},
                  {"count", query.count},
                  {"last", query.last},
                  {"op", EncodeBytes(query.op)},
                  {"denied", query.denied}};
  if (query.path) request["path"] = EncodeBytes(*query.path);
  LogReply log;
  TRY(connection_->Call(request, [&](const Frame& frame) -> Status {
    for (const Json& entry : GetMember(frame.header, "entries")) {
      log.entries.push_back(LogEntryFromJson(entry));
    }
    log.next = GetUint(frame.header, "next");
    log.end = GetBool(frame.header, "end");
    log.transaction = GetBytes(frame.header, "transaction");
    log.dropped = GetUint(frame.header, "dropped");
    return {};
  }));
  return log;
}

Result<std::vector<policy::SourceText>> Client::AskPolicy(const char* request) {
  const Frame reply = TRY(connection_->Call({{"request", request}}));
  std::vector<policy::SourceText> texts;
  for (const Json& file : GetMember(reply.header, "files")) {
    texts.push_back(SourceTextFromJson(file));
  }
  return texts;
}

Result<std::vector<policy::SourceText>> Client::Policy() {
  return AskPolicy("policy");
}

Result<std::vector<policy::SourceText>> Client::ReloadPolicy() {
  return AskPolicy("reload_policy");
}

Result<RuleVerdict> Client::Judge(const Json& request) {
  const Frame reply = TRY(connection_->Call(request));
  return RuleVerdictFromJson(GetMember(reply.header, "verdict"));
}

Result<std::string> Client::Explain(const Json& request) {
  const Frame reply = TRY(connection_->Call(request));
  if (!reply.header.contains("text")) {
    return Fail(EPROTO, "the daemon does not explain");
  }
  return GetBytes(reply.header, "text");
}

Result<std::vector<PendingQuestion>> Client::Pending() {
  std::vector<PendingQuestion> questions;
  TRY(connection_->Call(
      {{"request", "pending"}}, [&](const Frame& frame) -> Status {
        for (const Json& question : GetMember(frame.header, "pending")) {
          questions.push_back(PendingFromJson(question));
        }
        return {};
      }));
  return questions;
}

Status Client::Answer(uint64_t id, bool yes) {
  TRY(connection_->Call({{"request", "answer"}, {"id", id}, {"yes", yes}}));
  return {};
}

Status Client::DenyWaiting() {
  TRY(connection_->Call({{"request", "deny-waiting"}}));
  return {};
}

}  // namespace txfs::cli
