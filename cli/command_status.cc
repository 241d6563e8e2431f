#include "cli/commands.h"
#include "cli/conflict_text.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

/// `died_at`: where a daemon died that served it; else empty.
Document StatusDocument(const StatusReply& reply, const std::string& died_at) {
  const WorkspaceStatus& status = reply.status;
  Document document;
  document["id"] = status.id;
  document["name"] = ToUtf8(status.name);
  document["state"] = StateName(status.state);
  PutPath(document, "workspace", status.workspace);
  document["mountpoint"] = nullptr;
  if (!reply.mountpoint.empty()) {
    PutPath(document, "mountpoint", reply.mountpoint);
  }
  document["daemon"] = !reply.mountpoint.empty() ? "running"
                       : died_at.empty()         ? "none"
                                                 : "dead";
  document["pid"] = nullptr;
  if (reply.pid != 0) document["pid"] = reply.pid;
  document["changes"] = status.changes;
  document["operations"] = status.operations;
  PutPath(document, "store", status.store);
  document["store_bytes"] = status.store_bytes;
  document["created"] = UtcTime(status.created);
  document["savepoints"] = Document::array();
  for (const Savepoint& savepoint : status.savepoints) {
    document["savepoints"].push_back(SavepointDocument(savepoint));
  }
  document["conflicts"] = ConflictDocuments(reply.conflicts);
  return document;
}

constexpr size_t kShownConflicts = 5;

/// What changed in the base while the work went on.
std::string DriftText(const std::vector<Conflict>& conflicts) {
  if (conflicts.empty()) return "";
  std::string text = "conflicts    " + Count(conflicts.size(), "path") +
                     " of the workspace changed under the transaction\n";
  for (size_t i = 0; i < std::min(conflicts.size(), kShownConflicts); ++i) {
    text += "  " + ConflictText(conflicts[i]) + "\n";
  }
  if (conflicts.size() > kShownConflicts) {
    text += "  and " + std::to_string(conflicts.size() - kShownConflicts) +
            " more\n";
  }
  return text;
}

std::string MountText(const StatusReply& reply, const std::string& died_at) {
  if (!reply.mountpoint.empty()) {
    return EscapeControls(reply.mountpoint) + " (daemon " +
           std::to_string(reply.pid) + ")";
  }
  if (died_at.empty()) return "(not mounted)";
  return EscapeControls(died_at) +
         " (its daemon died; `txfs mount` resumes it)";
}

std::string StatusText(const StatusReply& reply, const std::string& died_at) {
  const WorkspaceStatus& status = reply.status;
  std::string text = "workspace    " + EscapeControls(status.workspace) + "\n";
  text += "mounted at   " + MountText(reply, died_at) + "\n";
  text += "transaction  " + status.id +
          (status.name.empty() ? "" : " " + EscapeControls(status.name)) +
          ", " + std::string(StateName(status.state)) + " since " +
          LocalTime(status.created, 0) + "\n";
  text += "changes      " + std::to_string(status.changes) + " (after " +
          Count(status.operations, "operation") + ")\n";
  const char* title = "savepoints   ";
  for (const Savepoint& savepoint : status.savepoints) {
    text += title + EscapeControls(savepoint.name) + ", " +
            LocalTime(savepoint.time, 0) + "\n";
    title = "             ";
  }
  text += "store        " + EscapeControls(status.store) + ", " +
          HumanSize(status.store_bytes) + "\n";
  text += DriftText(reply.conflicts);
  text += status.changes == 0
              ? "\nnothing changed\n"
              : "\n  (`txfs diff` shows the changes, `txfs commit` applies "
                "them, `txfs discard` drops them)\n";
  return text;
}

}  // namespace

Result<int> RunStatus(const Context& context, bool json) {
  const Place place = TRY(Locate(context));
  Client client = TRY(Connect(place));
  const StatusReply reply = TRY(client.GetStatus());
  Output output;
  output.Write(json ? Dump(StatusDocument(reply, place.died_at), 2) + "\n"
                    : StatusText(reply, place.died_at));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
