#include "cli/transactions.h"

#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "cli/json.h"
#include "cli/runtime_dir.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

/// How long a daemon that hangs may hold others up.
constexpr int kSiblingMs = 2'000;

bool IsAbsolute(const std::string& path) {
  return path.starts_with('/') && path.find('\0') == std::string::npos;
}

void FillDaemon(Store& store, ServedTransaction& transaction) {
  const auto text = store.ReadDaemonRecord(transaction.summary.id);
  if (!text) return;
  const Json record = Json::parse(*text, nullptr, false);
  DaemonAddress address{.mountpoint = GetBytes(record, "mountpoint"),
                        .socket = GetBytes(record, "socket")};
  // No daemon wrote any other.
  if (!IsAbsolute(address.mountpoint) || !IsAbsolute(address.socket)) return;
  transaction.address = std::move(address);
  transaction.stamp = GetBytes(record, "stamp");
  // After a crash another daemon may serve the mountpoint, perhaps another
  // workspace: what this transaction is asked for is none of its business.
  struct stat st{};
  const bool is_others = ::stat(transaction.address.socket.c_str(), &st) == 0 &&
                         SocketStamp(st) != transaction.stamp;
  if (is_others) {
    transaction.daemon = DaemonState::kDead;
    return;
  }
  const auto connection =
      SocketConnection::Open(transaction.address.socket, kSiblingMs);
  const int code = connection ? 0 : connection.error().code;
  // Any other error is that of somebody who is there.
  if (code == ENOENT || code == ECONNREFUSED) {
    transaction.daemon = DaemonState::kDead;
    return;
  }
  transaction.daemon = DaemonState::kRunning;
  transaction.pid = static_cast<uint32_t>(GetUint(record, "pid"));
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
             (name.empty() ? "" : " --name " + EscapeControls(name)) +
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
      "give more digits of one");
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
      const auto connection =
          SocketConnection::Open(sibling.address.socket, kSiblingMs);
      if (connection) {
        std::ignore = (*connection)->Call({{"request", "refresh"}});
      }
    });
  }
}

}  // namespace txfs::cli
