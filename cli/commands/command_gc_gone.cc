#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/locate/workspace_record.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/text.h"
#include "journal/store.h"

namespace txfs::cli {
namespace {

/// Why the store of a workspace that is gone is kept; "" when nothing in it
/// would be missed but what could be undone.
Result<std::string> ReasonToKeep(const WorkspaceRecord& record) {
  if (!Store::IsAt(record.store)) return "";
  UniqueFd directory = TRY(OpenRecordedStore(record));
  const std::unique_ptr<Store> store =
      TRY(Store::Open(std::move(directory), record.store, record.path));
  for (const TransactionSummary& summary : TRY(store->ListOpen())) {
    const OpenTransaction open =
        TRY(store->Resume(summary.id, {.background_drain = false}));
    if (open.journal->last_lsn() != kNoLsn) {
      return "transaction " + summary.id + " is open and has changes";
    }
  }
  return "";
}

std::string LineOf(const WorkspaceRecord& record, uint64_t bytes) {
  const std::string store = record.store_id ? "; its store " +
                                                  EscapeControls(record.store) +
                                                  " is left for you to remove"
                                            : "";
  return "freed " + HumanSize(bytes) + ": " + EscapeControls(record.path) +
         store + "\n";
}

std::string LineOf(const WorkspaceRecord& record, const std::string& reason) {
  return "kept: " + EscapeControls(record.path) + ": " +
         EscapeControls(reason) + ": `txfs adopt --from " +
         QuoteShell(record.path) + "` takes it over, `rm -r " +
         QuoteShell(record.store) + "` gives it up\n";
}

}  // namespace

Result<int> RunGcGone(bool json) {
  Document freed = Document::array();
  Document kept = Document::array();
  std::string text;
  for (const WorkspaceRecord& record : TRY(GoneWorkspaces())) {
    const auto looked = ReasonToKeep(record);
    const std::string reason = looked ? *looked : looked.error().ToString();
    if (!reason.empty()) {
      Document& entry = kept.emplace_back();
      PutPath(entry, "workspace", record.path);
      PutPath(entry, "store", record.store);
      entry["reason"] = reason;
      text += LineOf(record, reason);
      continue;
    }
    const uint64_t bytes = TRY(RemoveRecord(record));
    Document& entry = freed.emplace_back();
    PutPath(entry, "workspace", record.path);
    entry["bytes"] = bytes;
    text += LineOf(record, bytes);
  }
  Document document;
  document["freed"] = std::move(freed);
  document["kept"] = std::move(kept);
  if (text.empty()) text = "no workspace is gone\n";
  Output output;
  output.Write(json ? Dump(document, 2) + "\n" : text);
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
