#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/locate/reach.h"
#include "cli/output/json.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Whether an open transaction is served.
enum class DaemonState {
  kNone,     ///< not mounted
  kRunning,  ///< mounted
  kDead,     ///< its daemon crashed
};

/// "none", "running", "dead".
[[nodiscard]] std::string_view DaemonStateName(DaemonState state);

/// An open transaction and its daemon.
struct ServedTransaction {
  TransactionSummary summary;
  DaemonState daemon = DaemonState::kNone;
  DaemonAddress address;  ///< of the daemon, running or dead
  uint32_t pid = 0;       ///< 0: none runs
  /// SocketStamps of the daemon, running or dead.
  std::vector<std::string> stamps = {};
};

/// A daemon's record in its transaction.
struct DaemonRecord {
  struct Socket {
    std::string path, stamp;
  };
  uint32_t pid = 0;
  std::string mountpoint;
  std::vector<Socket> sockets;
};
[[nodiscard]] Json ToJson(const DaemonRecord& record);
/// Leaves missing or invalid members empty.
[[nodiscard]] DaemonRecord DaemonRecordFromJson(const Json& json);

/// Describes the mount: "/m (daemon 12)"; for a dead daemon with the remedy; ""
/// for none.
[[nodiscard]] std::string DaemonText(const ServedTransaction& transaction);

/// The open transactions of `store`, oldest first. Asks daemons only whether
/// they are alive; changes nothing.
Result<std::vector<ServedTransaction>> ListServed(Store& store);

/// Finds the transaction of `open` that `wanted` means: a name, an id, or the
/// beginning of an id. Without `wanted`: the only one, or the one without a
/// name. kUsage, with the candidates, if that is ambiguous. `workspace` is for
/// messages.
Result<ServedTransaction> ChooseTransaction(
    const std::vector<ServedTransaction>& open,
    const std::optional<std::string>& wanted, const std::string& workspace);

/// Tells the daemons of the other open transactions that the base changed, and
/// waits until they show it. Waits only briefly for a daemon that hangs; it
/// still gets the message.
void RefreshSiblings(Store& store, const std::string& own_id);

}  // namespace txfs::cli
