#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

Document CommitDocument(const CommitReply& reply) {
  const bool committed = reply.report.conflicts.empty();
  Document document;
  document["id"] = reply.report.id;
  document["state"] = committed ? "committed" : "active";
  document["changes"] = reply.report.changes;
  document["next"] = nullptr;
  if (!reply.next.empty() && committed) document["next"] = reply.next;
  document["conflicts"] = Document::array();
  for (const Conflict& conflict : reply.report.conflicts) {
    Document item;
    PutPath(item, "path", conflict.path);
    item["reason"] = ToUtf8(conflict.reason);
    document["conflicts"].push_back(std::move(item));
  }
  document["withheld"] = Document::array();
  for (const std::string& sentence : reply.report.withheld) {
    document["withheld"].push_back(ToUtf8(sentence));
  }
  return document;
}

std::string NextText(const std::string& next) {
  return next.empty() ? "" : "; transaction " + next + " begun";
}

Error ConflictError(const CommitReport& report) {
  return {.code = 0,
          .message = "nothing was committed: " +
                     Count(report.conflicts.size(), "path") +
                     " of the workspace changed under the transaction",
          .hint =
              "put the paths back as they were and commit again, or keep "
              "`txfs diff` as a patch, discard and apply it",
          .kind = ErrorKind::kConflict};
}

Result<int> ReportConflicts(const CommitReply& reply, bool json,
                            Output& output) {
  for (const Conflict& conflict : reply.report.conflicts) {
    if (!json) Say("conflict: " + conflict.path + ": " + conflict.reason);
  }
  if (json) output.Write(Dump(CommitDocument(reply), 2) + "\n");
  TRY(output.Finish());
  return std::unexpected(ConflictError(reply.report));
}

}  // namespace

Result<int> RunCommit(const Context& context, const std::string& message,
                      bool json) {
  Client client = TRY(Connect(context));
  const CommitReply reply = TRY(client.Commit(message));
  Output output;
  if (!reply.report.conflicts.empty()) {
    return ReportConflicts(reply, json, output);
  }
  for (const std::string& sentence : reply.report.withheld) {
    Say("warning: " + sentence);
  }
  output.Write(json ? Dump(CommitDocument(reply), 2) + "\n"
                    : "committed " + reply.report.id + ": " +
                          Count(reply.report.changes, "change") +
                          NextText(reply.next) + "\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunDiscard(const Context& context, bool json) {
  Client client = TRY(Connect(context));
  const DiscardReply reply = TRY(client.Discard());
  Document document;
  document["id"] = reply.id;
  document["state"] = "discarded";
  document["changes"] = reply.changes;
  document["next"] = nullptr;
  if (!reply.next.empty()) document["next"] = reply.next;
  Output output;
  output.Write(json ? Dump(document, 2) + "\n"
                    : "discarded " + reply.id + ": " +
                          Count(reply.changes, "change") +
                          NextText(reply.next) + "\n");
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
