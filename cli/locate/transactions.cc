#include "cli/locate/transactions.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "cli/output/json.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "journal/file_lock.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// How long a daemon that hangs may hold others up.
constexpr int kSiblingMs = 2'000;

/// Whether the process `pid` has the transaction open: its lock is held, and by
/// that process. A command that has it open for a moment is none.
bool IsHeldBy(Store& store, const std::string& id, uint32_t pid) {
  const auto dir = store.TransactionDir(id);
  if (!dir) return false;
  const auto lock =
      OpenAt(dir->get(), "lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  return lock && ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0 &&
         errno == EWOULDBLOCK &&
         LockHolder(dir->get(), "lock") == std::to_string(pid);
}

/// Whether somebody who is alive listens at one of `sockets`.
bool Listens(const std::vector<std::string>& sockets) {
  return std::ranges::any_of(sockets, [](const std::string& socket) {
    const auto connection = SocketConnection::Open(socket, kSiblingMs);
    const int code = connection ? 0 : connection.error().code;
    // Any other error is that of somebody who is there.
    return code == 0 || code == ETIMEDOUT;
  });
}

void FillDaemon(Store& store, ServedTransaction& transaction) {
  const auto text = store.ReadDaemonRecord(transaction.summary.id);
  if (!text) return;
  const DaemonRecord record = DaemonRecordFromJson(ParseBounded(*text));
  transaction.address.mountpoint = record.mountpoint;
  for (const DaemonRecord::Socket& socket : record.sockets) {
    transaction.stamps.push_back(socket.stamp);
    // After a crash another daemon may serve the mountpoint, perhaps another
    // workspace: what this transaction is asked for is none of its business.
    if (StampOf(socket.path) != socket.stamp) continue;
    transaction.address.sockets.push_back(socket.path);
  }
  // With its sockets removed a daemon is still the one that has the lock.
  if (!Listens(transaction.address.sockets) &&
      !IsHeldBy(store, transaction.summary.id, record.pid)) {
    transaction.daemon = DaemonState::kDead;
    return;
  }
  transaction.daemon = DaemonState::kRunning;
  transaction.pid = record.pid;
}

/// "work (01a1fda80333)", "01a1fda80333 (no name)".
std::string Describe(const TransactionSummary& summary) {
  if (summary.name.empty()) return summary.id + " (no name)";
  return summary.name + " (" + summary.id + ")";
}

std::string DescribeAll(const std::vector<const ServedTransaction*>& list) {
  return Join(list, [](const ServedTransaction* transaction) {
    return Describe(transaction->summary);
  });
}

using Selected = std::vector<const ServedTransaction*>;

template <class Matches>
Selected Select(const std::vector<ServedTransaction>& open, Matches matches) {
  Selected found;
  for (const ServedTransaction& transaction : open) {
    if (matches(transaction.summary)) found.push_back(&transaction);
  }
  return found;
}

Result<ServedTransaction> ChooseDefault(
    const std::vector<ServedTransaction>& open, const std::string& workspace) {
  if (open.empty()) {
    return Fail(0, "workspace " + workspace + " has no open transaction",
                "`txfs mount` begins one");
  }
  if (open.size() == 1) return open.front();
  const Selected unnamed =
      Select(open, [](const auto& summary) { return summary.name.empty(); });
  if (!unnamed.empty()) return *unnamed.front();
  const Selected all = Select(open, [](const auto&) { return true; });
  return Fail(ErrorKind::kUsage, 0,
              "workspace " + workspace +
                  " has several open transactions: " + DescribeAll(all),
              "choose one: txfs -t " + open.front().summary.name + " ...");
}

}  // namespace

Json ToJson(const DaemonRecord& record) {
  Json sockets = Json::array();
  for (const DaemonRecord::Socket& socket : record.sockets) {
    sockets.push_back(
        {{"path", EncodeBytes(socket.path)}, {"stamp", socket.stamp}});
  }
  return {{"pid", record.pid},
          {"mountpoint", EncodeBytes(record.mountpoint)},
          {"sockets", std::move(sockets)}};
}

DaemonRecord DaemonRecordFromJson(const Json& json) {
  DaemonRecord record{.pid = static_cast<uint32_t>(GetUint(json, "pid")),
                      .mountpoint = GetBytes(json, "mountpoint"),
                      .sockets = {}};
  for (const Json& item : GetMember(json, "sockets")) {
    DaemonRecord::Socket socket{.path = GetBytes(item, "path"),
                                .stamp = GetBytes(item, "stamp")};
    const bool is_one = socket.path.starts_with('/') && !socket.stamp.empty() &&
                        !socket.path.contains('\0');
    if (is_one) record.sockets.push_back(std::move(socket));
  }
  return record;
}

std::string_view DaemonStateName(DaemonState state) {
  switch (state) {
    case DaemonState::kNone:
      return "none";
    case DaemonState::kRunning:
      return "running";
    case DaemonState::kDead:
      return "dead";
  }
  return "none";
}

std::string DaemonText(const ServedTransaction& transaction) {
  const std::string at = EscapeControls(transaction.address.mountpoint);
  const std::string& name = transaction.summary.name;
  switch (transaction.daemon) {
    case DaemonState::kNone:
      return "";
    case DaemonState::kRunning:
      return at + " (daemon " + std::to_string(transaction.pid) + ")";
    case DaemonState::kDead:
      return at + " (its daemon died; `txfs mount" +
             (name.empty() ? ""
                           : " --name " + EscapeControls(QuoteShell(name))) +
             "` resumes it)";
  }
  return "";
}

Result<std::vector<ServedTransaction>> ListServed(Store& store) {
  std::vector<ServedTransaction> list;
  for (TransactionSummary& summary : TRY(store.ListOpen())) {
    ServedTransaction& transaction = list.emplace_back();
    transaction.summary = std::move(summary);
    FillDaemon(store, transaction);
  }
  return list;
}

Result<ServedTransaction> ChooseTransaction(
    const std::vector<ServedTransaction>& open,
    const std::optional<std::string>& wanted, const std::string& workspace) {
  if (!wanted) return ChooseDefault(open, workspace);
  if (wanted->empty()) {
    return Fail(ErrorKind::kUsage, 0, "-t needs a name or an id",
                "`txfs list` shows the transactions");
  }
  const Selected named = Select(
      open, [&](const auto& summary) { return summary.name == *wanted; });
  if (!named.empty()) return *named.front();
  const Selected prefixed = Select(open, [&](const auto& summary) {
    return summary.id.starts_with(*wanted);
  });
  if (prefixed.size() == 1) return *prefixed.front();
  if (prefixed.empty()) {
    const Selected all = Select(open, [](const auto&) { return true; });
    return Fail(0,
                "workspace " + workspace + " has no open transaction \"" +
                    EscapeControls(*wanted) + '"',
                all.empty() ? "`txfs mount` begins one"
                            : "these are open: " + DescribeAll(all));
  }
  return Fail(
      ErrorKind::kUsage, 0,
      "several ids begin with " + *wanted + ": " + DescribeAll(prefixed),
      "give more digits of the id");
}

void RefreshSiblings(Store& store, const std::string& own_id) {
  const auto open = ListServed(store);
  if (!open) return;
  std::vector<std::jthread> waiting;
  for (const ServedTransaction& sibling : *open) {
    if (sibling.summary.id == own_id ||
        sibling.daemon != DaemonState::kRunning) {
      continue;
    }
    waiting.emplace_back([&sibling] {
      const auto connection = ConnectDaemon(sibling.address, kSiblingMs);
      if (connection) {
        std::ignore = (*connection)->Call({{"request", "refresh"}});
      }
    });
  }
}

}  // namespace txfs::cli
