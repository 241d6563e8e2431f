#include <map>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/mount/mounting.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "fs/commit/committer.h"

namespace txfs::cli {
namespace {

/// A line of the list.
struct Item {
  TransactionSummary summary;
  std::optional<ServedTransaction> open;
  bool counted = true;  ///< else nobody could say how many changes it has
};

/// A daemon that hangs, or a journal that is in use, must not hold up the list.
constexpr int kCountMs = 2'000;

/// What the daemon, or else the journal, knows of an open transaction.
Result<WorkspaceStatus> LookInto(const RealWorkspace& workspace,
                                 const ServedTransaction& transaction) {
  if (transaction.daemon == DaemonState::kRunning) {
    Client client(TRY(ConnectDaemon(transaction.address, kCountMs)));
    return TRY(client.GetStatus()).status;
  }
  Client client = TRY(Connect(Place{.workspace = workspace.path,
                                    .root = workspace.path,
                                    .daemon = DaemonState::kNone,
                                    .address = {},
                                    .real = workspace,
                                    .transaction = transaction.summary.name}));
  return TRY(client.GetStatus()).status;
}

/// The open transaction whose commit stopped after its point of no return;
/// empty: none.
std::string HalfWay(Store& store) {
  const auto read = ReadIntent(store);
  if (!read || !*read) return "";
  const TransactionSummary& summary = (*read)->summary;
  return summary.kind == TransactionKind::kPartial ? summary.of : summary.id;
}

Result<std::vector<Item>> ReadList(const RealWorkspace& workspace) {
  const std::unique_ptr<Archive> archive = TRY(OpenArchive(workspace));
  // What went wrong with it is best looked into with a list at hand.
  const auto recovered = RollForward(*archive, {}, RefreshSiblings);
  if (!recovered) Say("warning: " + recovered.error().ToString());
  SayFinished(recovered.value_or(""));
  Store& store = archive->store();
  const std::string half_way = recovered ? "" : HalfWay(store);
  std::map<std::string, Item> items;
  for (ServedTransaction& open : TRY(ListServed(store))) {
    Item& item = items[open.summary.id];
    const auto known = LookInto(workspace, open);
    item.counted = known.has_value();
    if (open.summary.id == half_way) {
      open.summary.state = TransactionState::kCommitting;
    }
    if (known) {
      open.summary.changes = known->changes;
      open.summary.state = known->state;
      open.summary.denied = known->denied;
    }
    item.open = std::move(open);
  }
  std::vector<Item> list;
  // Read last: one that was found half committed has ended by now.
  for (TransactionSummary& summary : TRY(store.List())) {
    Item item = std::move(items[summary.id]);
    if (!IsEnded(summary) && item.open) {
      summary.changes = item.open->summary.changes;
      summary.state = item.open->summary.state;
      summary.denied = item.open->summary.denied;
    }
    item.summary = std::move(summary);
    list.push_back(std::move(item));
  }
  return list;
}

Document ListDocument(const std::vector<Item>& list) {
  Document document = Document::array();
  for (const Item& entry : list) {
    const TransactionSummary& transaction = entry.summary;
    const ServedTransaction served =
        IsEnded(transaction) ? ServedTransaction{}
                             : entry.open.value_or(ServedTransaction{});
    Document item = SummaryDocument(transaction);
    if (!entry.counted) item["changes"] = item["denied"] = nullptr;
    item["daemon"] = DaemonStateName(served.daemon);
    item["mountpoint"] = nullptr;
    if (served.daemon != DaemonState::kNone) {
      PutPath(item, "mountpoint", served.address.mountpoint);
    }
    item["pid"] = nullptr;
    if (served.pid != 0) item["pid"] = served.pid;
    document.push_back(std::move(item));
  }
  return document;
}

/// What became of the runs of a transaction; the message may have the command.
std::string RunsText(const TransactionSummary& transaction) {
  constexpr size_t kShown = 60;
  if (transaction.runs.empty()) return "";
  const RunRecord& last = transaction.runs.back();
  std::string text;
  if (transaction.message.empty()) {
    std::string command = RunCommandText(last);
    if (command.size() > kShown)
      command = ToUtf8(command.substr(0, kShown)) + "...";
    text = "  txfs run: " + command;
  }
  text += "  (";
  if (transaction.runs.size() > 1) {
    text += std::to_string(transaction.runs.size()) + " runs, the last ";
  }
  return text + RunOutcomeText(last) + ")";
}

std::string ListText(const std::vector<Item>& list) {
  std::string text;
  for (const Item& item : list) {
    const TransactionSummary& transaction = item.summary;
    const bool ended = IsEnded(transaction);
    std::string state(StateName(transaction.state));
    state.resize(std::max<size_t>(state.size(), 10), ' ');
    std::string mark = UndoMark(transaction);
    mark.resize(8, ' ');
    text += transaction.id + "  " + state + "  " + mark + "  " +
            LocalTime(ended ? transaction.ended : transaction.created, 0) +
            "  " +
            (item.counted ? Count(transaction.changes, "change") : "? changes");
    if (const uint64_t denied = DeniedCount(transaction.denied); denied != 0) {
      text += ", " + std::to_string(denied) + " refused";
    }
    if (!transaction.name.empty()) {
      text += "  " + EscapeControls(transaction.name);
    }
    if (!transaction.message.empty()) {
      text += "  " + EscapeControls(transaction.message);
    }
    text += RunsText(transaction);
    if (!ended && item.open && item.open->daemon != DaemonState::kNone) {
      text += "  at " + DaemonText(*item.open);
    }
    text += "\n";
  }
  return text;
}

/// Where nothing but a dead mount over the workspace is in the way, it goes:
/// who looks for what crashed is to find it.
Result<WorkspacePlace> FindListed(const Context& context) {
  auto place = LocateWorkspace(context);
  const auto entry = FindTxfsMount(context.directory);
  if (place || !entry || entry->source != entry->mountpoint ||
      !IsDead(*entry)) {
    return place;
  }
  TRY(ClearDeadMount(*entry));
  return LocateWorkspace(context);
}

}  // namespace

Result<int> RunList(const Context& context, bool json) {
  const WorkspacePlace place = TRY(FindListed(context));
  const std::vector<Item> list = TRY(ReadList(place.real));
  Output output;
  output.Write(json ? Dump(ListDocument(list), 2) + "\n" : ListText(list));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli
