#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/locate/context.h"
#include "cli/locate/reach.h"
#include "cli/locate/transactions.h"
#include "cli/protocol/client.h"
#include "fs/workspace/workspace.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs::cli {

/// The transaction to which a command applies.
struct Place {
  /// Absolute. In a mount whose source is not a path (fsname=): the mountpoint.
  std::string workspace;
  std::string root;  ///< workspace or mountpoint, root of path arguments
  DaemonState daemon = DaemonState::kNone;
  DaemonAddress address;  ///< of the daemon, running or dead
  // To open if no daemon runs.
  RealWorkspace real;
  std::string transaction;  ///< its name
};

/// The workspace to which a command applies, and its root.
struct WorkspacePlace {
  RealWorkspace real;
  std::string root;
};

/// The workspace of `context.directory`: that of the innermost txfs mount
/// around it, else the one at or above it that has a record. With --store, the
/// workspace of that store.
Result<WorkspacePlace> LocateWorkspace(const Context& context);

/// The transaction that -t selects. Without -t: that of the mount around
/// `context.directory`, else the only one, or the one without a name.
Result<Place> Locate(const Context& context);

/// The workspace at or above `directory` that has a record; ignores mounts.
/// None if there is none. Stops at a directory in which another user could have
/// made the directories below.
Result<std::optional<std::string>> FindWorkspace(const std::string& directory);

/// Opens store and base of `workspace`, without a transaction.
Result<std::unique_ptr<Archive>> OpenArchive(const RealWorkspace& workspace);

/// Options to open the transaction in this process, if no daemon runs.
Result<WorkspaceOptions> OptionsOf(const Place& place);

/// Connects to the daemon, or opens the transaction in this process.
Result<Client> Connect(const Place& place);
/// Connects to the transaction that Locate finds.
Result<Client> Connect(const Context& context);
/// The treatment of a waiting operation that prevents the write-back of a
/// mapped file.
enum class WhatWaits : uint8_t {
  kGoOnWaiting,  ///< reports that changes through the mapping are missing
  kDenied,       ///< for commands that deny waiting questions in any case
};
/// As Connect, after changes through mappings have reached the daemon, so that
/// they are in the transaction. The command does this, because the daemon would
/// wait for itself. `policy` applies if no daemon runs; null: none.
Result<Client> ConnectFlushed(
    const Place& place, WhatWaits what_waits,
    std::shared_ptr<const policy::Policy> policy = nullptr);

/// The transaction given as argument or with -t, if any. kUsage if it is empty
/// or given twice.
Result<std::optional<std::string>> WantedTransaction(
    const Context& context, const std::optional<std::string>& argument);

/// Connects to a daemon of the workspace, preferably that of the mount around
/// the directory; else to store and base. For requests on ended transactions:
/// none needs to be open.
Result<Client> ConnectArchive(const Context& context);

/// Looks up the directories that the last request moved in the mount of
/// `place`. The command does this, because the daemon would wait for itself.
void LookUpMoved(const Place& place, const Client& client);

/// Path arguments relative to the workspace.
Result<std::vector<std::string>> RelativePaths(
    const Context& context, const Place& place,
    const std::vector<std::string>& paths);

}  // namespace txfs::cli
