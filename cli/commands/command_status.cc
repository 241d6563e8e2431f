#include <map>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "cli/rules/policy_rules.h"
#include "policy/sources.h"

namespace txfs::cli {
namespace {

/// Those of a mount.
struct ShownRules {
  Rules rules;  ///< null: there are none
  std::vector<std::string> sources;
};

/// What there is to tell.
struct Shown {
  WorkspaceStatus status;
  ServedTransaction served;                        ///< name, and by whom
  std::optional<std::vector<Conflict>> conflicts;  ///< none: not known
  std::optional<ShownRules> rules;                 ///< none: none are
  /// What the kernel sent to the mount, by kind.
  std::map<std::string, uint64_t> requests = {};
};

Document RulesDocument(const std::optional<ShownRules>& rules) {
  if (!rules) return nullptr;
  Document document;
  const bool any = rules->rules != nullptr;
  document["count"] = any ? rules->rules->rules().size() : 0;
  document["limits"] = any ? rules->rules->limits().size() : 0;
  document["commands"] = any ? rules->rules->exec_rules().size() : 0;
  document["sources"] = Document::array();
  for (const std::string& source : rules->sources) {
    document["sources"].push_back(ToUtf8(source));
  }
  return document;
}

std::string RulesText(const ShownRules& rules) {
  const std::string from =
      rules.sources.empty() ? "" : " of " + Join(rules.sources);
  return CountRules(rules.rules.get()) + EscapeControls(from);
}

Result<ShownRules> ReadRules(Client& client) {
  const auto texts = TRY(client.Policy());
  ShownRules found{.rules = TRY(policy::Compile(texts)), .sources = {}};
  for (const policy::SourceText& text : texts) {
    found.sources.push_back(text.file);
  }
  return found;
}

Document StatusDocument(const Shown& shown) {
  const WorkspaceStatus& status = shown.status;
  const ServedTransaction& served = shown.served;
  Document document;
  document["id"] = status.id;
  document["name"] = ToUtf8(status.name);
  document["state"] = StateName(status.state);
  PutPath(document, "workspace", status.workspace);
  document["mountpoint"] = nullptr;
  if (served.daemon == DaemonState::kRunning) {
    PutPath(document, "mountpoint", served.address.mountpoint);
  }
  document["daemon"] = DaemonStateName(served.daemon);
  document["pid"] = nullptr;
  if (served.pid != 0) document["pid"] = served.pid;
  document["changes"] = status.changes;
  document["operations"] = status.operations;
  PutPath(document, "store", status.store);
  document["store_bytes"] = status.store_bytes;
  document["created"] = UtcTime(status.created);
  document["savepoints"] = Document::array();
  for (const Savepoint& savepoint : status.savepoints) {
    document["savepoints"].push_back(SavepointDocument(savepoint));
  }
  document["calls"] = status.calls;
  document["rules"] = RulesDocument(shown.rules);
  document["denied"] = DeniedDocument(status.denied);
  document["conflicts"] = nullptr;
  if (shown.conflicts) {
    document["conflicts"] = ConflictDocuments(*shown.conflicts);
  }
  document["requests"] = nullptr;
  if (!shown.requests.empty()) document["requests"] = shown.requests;
  return document;
}

constexpr size_t kShownConflicts = 5;

/// What changed in the base while the work went on.
std::string DriftText(const std::vector<Conflict>& conflicts) {
  if (conflicts.empty()) return "";
  std::string text = "conflicts    " + ConflictCount(conflicts.size()) + "\n";
  for (size_t i = 0; i < std::min(conflicts.size(), kShownConflicts); ++i) {
    text += "  " + ConflictText(conflicts[i]) + "\n";
  }
  if (conflicts.size() > kShownConflicts) {
    text += "  and " + std::to_string(conflicts.size() - kShownConflicts) +
            " more (`txfs status --json` lists all)\n";
  }
  return text;
}

std::string MountText(const ServedTransaction& served) {
  const std::string text = DaemonText(served);
  return text.empty() ? "(not mounted)" : text;
}

/// What can be done now.
std::string RemedyText(const WorkspaceStatus& status, bool in_conflict) {
  if (status.state == TransactionState::kCommitting) {
    return "  (the commit stopped half-way: `txfs commit` continues it)\n";
  }
  if (status.changes == 0 && !in_conflict) return "nothing changed\n";
  if (!in_conflict) {
    return "  (`txfs diff` shows the changes, `txfs commit` applies them, "
           "`txfs discard` drops them)\n";
  }
  return "  (`txfs diff` shows the changes, `txfs discard` drops them, `txfs "
         "commit --on-conflict=mine`, `=theirs` or `=merge` resolves the "
         "conflicts)\n";
}

std::string TransactionText(const WorkspaceStatus& status) {
  if (status.id.empty()) {
    return "none: the store is full; the first change for which there is "
           "room begins one";
  }
  return status.id +
         (status.name.empty() ? "" : " " + EscapeControls(status.name)) + ", " +
         std::string(StateName(status.state)) + " since " +
         LocalTime(status.created, 0);
}

std::string StatusText(const Shown& shown) {
  const WorkspaceStatus& status = shown.status;
  std::string text = "workspace    " + EscapeControls(status.workspace) + "\n";
  text += "mounted at   " + MountText(shown.served) + "\n";
  text += "transaction  " + TransactionText(status) + "\n";
  text += "changes      " + std::to_string(status.changes) + " (after " +
          Count(status.operations, "operation") + ")\n";
  const char* title = "savepoints   ";
  for (const Savepoint& savepoint : status.savepoints) {
    text += title + EscapeControls(savepoint.name) + ", " +
            LocalTime(savepoint.time, 0) + "\n";
    title = "             ";
  }
  if (status.calls != 0) {
    text += "calls        " + std::to_string(status.calls) +
            " (`txfs log --calls` lists them)\n";
  }
  if (shown.rules) text += "policy       " + RulesText(*shown.rules) + "\n";
  if (!status.denied.empty()) {
    text += "refused      " + DeniedText(status.denied) +
            " (`txfs log --denied` shows them)\n";
  }
  text += "store        " + EscapeControls(status.store) + ", " +
          HumanSize(status.store_bytes) + "\n";
  const auto conflicts = shown.conflicts.value_or(std::vector<Conflict>());
  return text + DriftText(conflicts) + "\n" +
         RemedyText(status, !conflicts.empty());
}

}  // namespace

Result<int> RunStatus(const Context& context, bool json) {
  const Place place = TRY(Locate(context));
  Client client = TRY(Connect(place));
  Client::FullReply full = TRY(client.GetFullStatus());
  const StatusReply& reply = full.reply;
  Shown shown{
      .status = reply.status, .served = {}, .conflicts = {}, .rules = {}};
  shown.served.summary.name = reply.status.name;
  shown.served.daemon = place.daemon;
  shown.served.address = place.address;
  shown.served.pid = reply.pid;
  if (place.daemon == DaemonState::kRunning) {
    shown.rules = TRY(ReadRules(client));
    if (json) shown.requests = TRY(client.GetRequests());
  }
  // Whatever is wrong in the workspace, the rest is to be seen.
  if (full.conflicts) {
    shown.conflicts = *std::move(full.conflicts);
  } else {
    Say("warning: the conflicts are not known: " +
        full.conflicts.error().ToString());
  }
  Output output;
  output.Write(json ? Dump(StatusDocument(shown), 2) + "\n"
                    : StatusText(shown));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
