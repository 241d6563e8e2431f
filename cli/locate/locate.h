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

/// The transaction that a command is about.
struct Place {
  /// Absolute. In a mount whose source is not a path (fsname=): the mountpoint.
  std::string workspace;
  std::string root;  ///< workspace or mountpoint: what names are relative to
  DaemonState daemon = DaemonState::kNone;
  DaemonAddress address;  ///< of the daemon, running or dead
  // Where none runs: what to open.
  RealWorkspace real;
  std::string transaction;  ///< its name
};

/// The workspace that a command is about, and from where.
struct WorkspacePlace {
  RealWorkspace real;
  std::string root;
};

/// What `context.directory` belongs to: the workspace of the innermost txfs
/// mount around it, else the one at or above it that the user's state directory
/// knows. --store names one outright.
Result<WorkspacePlace> LocateWorkspace(const Context& context);

/// The transaction that -t chooses there; without -t that of the mount around
/// `context.directory`, else the only one, or the one without a name.
Result<Place> Locate(const Context& context);

/// The workspace at or above `directory` that has a record, without regard to
/// mounts; none when there is none. Goes up only as far as nobody else could
/// have made the directories below.
Result<std::optional<std::string>> FindWorkspace(const std::string& directory);

/// Store and base of `workspace`, without a transaction.
Result<std::unique_ptr<Archive>> OpenArchive(const RealWorkspace& workspace);

/// What opens the transaction here, where no daemon runs.
Result<WorkspaceOptions> OptionsOf(const Place& place);

/// To the daemon, or to the transaction itself, opened here.
Result<Client> Connect(const Place& place);
/// The same for what the context belongs to.
Result<Client> Connect(const Context& context);
/// What to do with an operation that waits for an answer and keeps what is
/// stored through a mapping of its file from being written back.
enum class WhatWaits : uint8_t {
  kGoOnWaiting,  ///< what is stored is said to be missing
  kDenied,       ///< for commands that deny what waits in any case
};
/// The same, when what processes have stored through mappings has reached the
/// daemon: it belongs to the transaction as it is now. Not the daemon's to do,
/// which would wait for itself. `policy` judges where no daemon runs; null:
/// nothing does.
Result<Client> ConnectFlushed(
    const Place& place, WhatWaits what_waits,
    std::shared_ptr<const policy::Policy> policy = nullptr);

/// The transaction that a command says with its argument or with -t, if it
/// does. kUsage when it is empty, or said twice.
Result<std::optional<std::string>> WantedTransaction(
    const Context& context, const std::optional<std::string>& argument);

/// To a daemon of the workspace, that of the mount around the directory first;
/// else to store and base. For what is about ended transactions: none has to be
/// open.
Result<Client> ConnectArchive(const Context& context);

/// Looks up what the last request moved in the mount of `place`. Not the
/// daemon's to do, which would wait for itself.
void LookUpMoved(const Place& place, const Client& client);

/// The workspace-relative form of path arguments.
Result<std::vector<std::string>> RelativePaths(
    const Context& context, const Place& place,
    const std::vector<std::string>& paths);

}  // namespace txfs::cli
