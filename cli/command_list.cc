#include "cli/commands.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/summary_format.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

/// From whoever can open the journal; where no transaction is open, from the
/// store alone.
Result<ListReply> ReadList(const Place& place) {
  Result<Client> client = Connect(place);
  if (client) return client->List();
  if (client.error().code != ENOENT) return std::unexpected(client.error());
  ListReply list;
  const std::unique_ptr<Store> store = TRY(OpenStore(place));
  list.transactions = TRY(store->List());
  return list;
}

Document ListDocument(const ListReply& list) {
  Document document = Document::array();
  for (const TransactionSummary& transaction : list.transactions) {
    const bool served = transaction.id == list.current && list.pid != 0;
    Document item = SummaryDocument(transaction);
    item["mountpoint"] = nullptr;
    if (served) PutPath(item, "mountpoint", list.mountpoint);
    item["pid"] = nullptr;
    if (served) item["pid"] = list.pid;
    document.push_back(std::move(item));
  }
  return document;
}

std::string ListText(const ListReply& list) {
  std::string text;
  for (const TransactionSummary& transaction : list.transactions) {
    std::string state(StateName(transaction.state));
    state.resize(std::max<size_t>(state.size(), 10), ' ');
    std::string mark = UndoMark(transaction);
    mark.resize(8, ' ');
    text +=
        transaction.id + "  " + state + "  " + mark + "  " +
        LocalTime(
            IsEnded(transaction) ? transaction.ended : transaction.created, 0) +
        "  " + Count(transaction.changes, "change");
    if (!transaction.name.empty()) {
      text += "  " + EscapeControls(transaction.name);
    }
    if (!transaction.message.empty()) {
      text += "  " + EscapeControls(transaction.message);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

Result<int> RunList(const Context& context, bool json) {
  const Place place = TRY(Locate(context));
  const ListReply list = TRY(ReadList(place));
  Output output;
  output.Write(json ? Dump(ListDocument(list), 2) + "\n" : ListText(list));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
