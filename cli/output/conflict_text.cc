#include "cli/output/conflict_text.h"

#include "cli/output/errors.h"
#include "cli/output/text.h"

namespace txfs::cli {

std::string ConflictText(const Conflict& conflict) {
  std::string text = EscapeControls(conflict.path) + ": " + conflict.reason +
                     " in the workspace";
  if (!conflict.ours.empty()) {
    text += ", " + conflict.ours + " in the transaction";
  }
  if (!conflict.note.empty()) text += " (" + conflict.note + ")";
  return text;
}

std::string ConflictCount(size_t conflicts) {
  return Count(conflicts, "path") +
         " of the workspace changed during the transaction";
}

void SayConflicts(const std::vector<Conflict>& conflicts) {
  for (const Conflict& conflict : conflicts) {
    Say("conflict: " + ConflictText(conflict));
  }
}

Document ConflictDocuments(const std::vector<Conflict>& conflicts) {
  Document documents = Document::array();
  for (const Conflict& conflict : conflicts) {
    Document item;
    PutPath(item, "path", conflict.path);
    item["reason"] = ToUtf8(conflict.reason);
    item["ours"] = nullptr;
    if (!conflict.ours.empty()) item["ours"] = ToUtf8(conflict.ours);
    item["note"] = nullptr;
    if (!conflict.note.empty()) item["note"] = ToUtf8(conflict.note);
    documents.push_back(std::move(item));
  }
  return documents;
}

}  // namespace txfs::cli
