#include "cli/client.h"

#include "cli/wire.h"

namespace txfs::cli {

Result<StatusReply> Client::GetStatus() {
  const Frame reply = TRY(connection_->Call({{"request", "status"}}));
  return StatusReply{
      .status = WorkspaceStatusFromJson(GetMember(reply.header, "status")),
      .pid = static_cast<uint32_t>(GetUint(reply.header, "pid")),
      .mountpoint = GetBytes(reply.header, "mountpoint")};
}

Result<std::vector<NetChange>> Client::Changes(
    bool expand, const std::vector<std::string>& below,
    const std::optional<std::string>& since) {
  Json request = {
      {"request", "changes"}, {"expand", expand}, {"below", EncodeList(below)}};
  if (since) request["since"] = EncodeBytes(*since);
  std::vector<NetChange> changes;
  TRY(connection_->Call(request, [&](const Frame& frame) -> Status {
    for (const Json& change : GetMember(frame.header, "changes")) {
      changes.push_back(NetChangeFromJson(change));
    }
    return {};
  }));
  return changes;
}

Result<std::string> Client::ReadContent(
    const ChangeSide& side, bool before, uint64_t limit,
    const std::optional<std::string>& since) {
  if (side.attr.type == FileType::kSymlink) return side.symlink;
  Json request = {{"request", "read"}, {"length", kPayloadMax}};
  // What the transaction did not touch is read where the base has it.
  if (side.ino == kNoIno || (before && !since)) {
    request["base_path"] = EncodeBytes(side.base_path);
  } else {
    request["ino"] = Raw(side.ino);
    if (before) request["since"] = EncodeBytes(*since);
  }
  std::string content;
  for (;;) {
    request["offset"] = content.size();
    const Frame reply = TRY(connection_->Call(request));
    if (content.size() + reply.payload.size() > limit) {
      return Fail(EFBIG, "file content");
    }
    content += reply.payload;
    if (reply.payload.size() < kPayloadMax) return content;
  }
}

Result<CommitReply> Client::Commit(const std::string& message) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "commit"}, {"message", EncodeBytes(message)}}));
  return CommitReply{
      .report = CommitReportFromJson(GetMember(reply.header, "report")),
      .next = GetBytes(reply.header, "next")};
}

Result<DiscardReply> Client::Discard() {
  const Frame reply = TRY(connection_->Call({{"request", "discard"}}));
  return DiscardReply{.id = GetBytes(reply.header, "id"),
                      .changes = GetUint(reply.header, "changes"),
                      .next = GetBytes(reply.header, "next")};
}

Result<Savepoint> Client::MakeSavepoint(const std::string& name) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "savepoint"}, {"name", EncodeBytes(name)}}));
  return SavepointFromJson(GetMember(reply.header, "savepoint"));
}

Result<RollbackReport> Client::Rollback(const std::string& name) {
  const Frame reply = TRY(connection_->Call(
      {{"request", "rollback"}, {"name", EncodeBytes(name)}}));
  return RollbackReport{
      .savepoint = SavepointFromJson(GetMember(reply.header, "savepoint")),
      .undone = GetUint(reply.header, "undone")};
}

Result<LogReply> Client::Log(const LogQuery& query) {
  Json request = {{"request", "log"},
                  {"first", query.first},
                  {"count", query.count},
                  {"last", query.last},
                  {"op", EncodeBytes(query.op)}};
  if (query.path) request["path"] = EncodeBytes(*query.path);
  LogReply log;
  TRY(connection_->Call(request, [&](const Frame& frame) -> Status {
    for (const Json& entry : GetMember(frame.header, "entries")) {
      log.entries.push_back(LogEntryFromJson(entry));
    }
    log.next = GetUint(frame.header, "next");
    log.end = GetBool(frame.header, "end");
    log.transaction = GetBytes(frame.header, "transaction");
    return {};
  }));
  return log;
}

}  // namespace txfs::cli
