#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

Document UndoDocument(const UndoReport& report) {
  const bool undone = report.conflicts.empty();
  Document document;
  document["id"] = nullptr;
  if (undone) document["id"] = report.id;
  document["undone"] = report.undone;
  document["state"] = undone ? "undone" : "committed";
  document["changes"] = report.changes;
  document["conflicts"] = ConflictDocuments(report.conflicts);
  return document;
}

std::string UndoText(const UndoReport& report) {
  return "undone " + report.undone + ": " + Count(report.changes, "change") +
         "; `txfs undo " + report.id + "` brings it back\n";
}

Error UndoRefused(const UndoReport& report) {
  return {.code = 0,
          .message =
              "nothing was undone: " + Count(report.conflicts.size(), "path") +
              " of the workspace changed since " + report.undone,
          .hint =
              "put the paths back as they were, or undo what was committed "
              "after it first; `txfs show " +
              report.undone + "` has what it changed",
          .kind = ErrorKind::kConflict};
}

std::string GcText(const GcReport& report) {
  std::string text = "freed " + HumanSize(report.bytes) + "; " +
                     Count(report.commits, "commit") +
                     " can no longer be undone";
  if (report.forgotten != 0) {
    text += "; " + Count(report.forgotten, "discarded or undone transaction") +
            " forgotten";
  }
  return text + "\n";
}

}  // namespace

Result<int> RunUndo(const Context& context,
                    const std::optional<std::string>& transaction, bool json) {
  const auto wanted = TRY(WantedTransaction(context, transaction));
  Client client = TRY(ConnectArchive(context));
  const UndoReport report = TRY(client.Undo(wanted.value_or("")));
  const bool undone = report.conflicts.empty();
  Output output;
  if (json) {
    output.Write(Dump(UndoDocument(report), 2) + "\n");
  } else if (undone) {
    output.Write(UndoText(report));
  } else {
    SayConflicts(report.conflicts);
  }
  TRY(output.Finish());
  if (undone) return 0;
  return std::unexpected(UndoRefused(report));
}

Result<int> RunGc(const Context& context, const KeepArguments& keep,
                  bool json) {
  Client client = TRY(ConnectArchive(context));
  const GcReport report = TRY(client.CollectGarbage(keep.commits, keep.bytes));
  Document document;
  document["commits"] = report.commits;
  document["bytes"] = report.bytes;
  document["forgotten"] = report.forgotten;
  Output output;
  output.Write(json ? Dump(document, 2) + "\n" : GcText(report));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
