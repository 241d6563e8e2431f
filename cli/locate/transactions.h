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
  kDead,     ///< its daemon ended without saying so: it crashed
};

/// "none", "running", "dead".
[[nodiscard]] std::string_view DaemonStateName(DaemonState state);

/// An open transaction, and who serves it.
struct ServedTransaction {
  TransactionSummary summary;
  DaemonState daemon = DaemonState::kNone;
  DaemonAddress address;  ///< of the daemon, running or dead
  uint32_t pid = 0;       ///< 0: none runs
  /// SocketStamps of the daemon, running or dead.
  std::vector<std::string> stamps = {};
};

/// What a daemon says in its transaction of itself.
struct DaemonRecord {
  struct Socket {
    std::string path, stamp;
  };
  uint32_t pid = 0;
  std::string mountpoint;
  std::vector<Socket> sockets;
};
[[nodiscard]] Json ToJson(const DaemonRecord& record);
/// What is missing or makes no sense is left empty.
[[nodiscard]] DaemonRecord DaemonRecordFromJson(const Json& json);

/// Where it is mounted, in words: "/m (daemon 12)", of a dead daemon with the
/// remedy; "" of none.
[[nodiscard]] std::string DaemonText(const ServedTransaction& transaction);

/// The open transactions of `store`, oldest first. Asks no daemon anything but
/// whether it is there, and changes nothing.
Result<std::vector<ServedTransaction>> ListServed(Store& store);

/// The transaction of `open` that `wanted` means: a name, an id, or the
/// beginning of one id. Without it, the only one, or the one without a name.
/// kUsage, with the candidates, when that is not clear. `workspace` is for
/// messages.
Result<ServedTransaction> ChooseTransaction(
    const std::vector<ServedTransaction>& open,
    const std::optional<std::string>& wanted, const std::string& workspace);

/// Tells the daemons of the other open transactions that the base changed, and
/// waits until they show it. One that does not answer is left alone after a
/// moment: it still gets the message.
void RefreshSiblings(Store& store, const std::string& own_id);

}  // namespace txfs::cli
