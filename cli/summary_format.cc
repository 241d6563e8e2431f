#include "cli/summary_format.h"

#include "cli/errors.h"
#include "cli/text.h"

namespace txfs::cli {

Document SummaryDocument(const TransactionSummary& transaction) {
  const auto id_or_null = [](const std::string& id) -> Document {
    if (id.empty()) return nullptr;
    return id;
  };
  Document item;
  item["id"] = transaction.id;
  item["name"] = ToUtf8(transaction.name);
  item["kind"] = KindName(transaction.kind);
  item["of"] = id_or_null(transaction.of);
  item["state"] = StateName(transaction.state);
  item["undoable"] = transaction.undoable;
  item["undone_by"] = id_or_null(transaction.undone_by);
  item["created"] = UtcTime(transaction.created);
  item["ended"] = nullptr;
  if (IsEnded(transaction)) item["ended"] = UtcTime(transaction.ended);
  item["author"] = nullptr;
  if (!transaction.author.empty()) item["author"] = ToUtf8(transaction.author);
  item["message"] = ToUtf8(transaction.message);
  item["changes"] = transaction.changes;
  return item;
}

std::string UndoMark(const TransactionSummary& transaction) {
  if (transaction.undoable) return "undoable";
  return transaction.undone_by.empty() ? "" : "undone";
}

}  // namespace txfs::cli
