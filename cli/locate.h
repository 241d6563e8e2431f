#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/client.h"
#include "cli/context.h"
#include "fs/fuse_mount_table.h"
#include "journal/base/result.h"

namespace txfs::cli {

/// A daemon that can be asked.
struct DaemonAddress {
  std::string mountpoint, socket;
};

/// The workspace that a directory belongs to.
struct Place {
  /// Absolute. In a mount whose source is not a path (fsname=): the mountpoint.
  std::string workspace;
  std::optional<std::string> store;     ///< when it is not in the workspace
  std::optional<DaemonAddress> daemon;  ///< that serves it
  std::string root;  ///< workspace or mountpoint: what names are relative to
};

/// What `context.directory` belongs to: the innermost txfs mount around it,
/// else the workspace whose store is in it or in a directory above it, else one
/// that the user's registry knows. --store names a workspace outright.
Result<Place> Locate(const Context& context);

/// The workspace at or above `directory` by its store, without regard to
/// mounts; none when there is none.
std::optional<Place> FindWorkspace(const std::string& directory);

/// Where the daemon of the mount `entry` listens.
DaemonAddress AddressOf(const MountEntry& entry);

/// The mount that serves `workspace`, according to the mount table or to the
/// records in its store.
Result<std::optional<DaemonAddress>> FindDaemon(const Place& place);

/// To the daemon at `address`; says so when the mount is dead.
Result<std::unique_ptr<SocketConnection>> ConnectDaemon(
    const DaemonAddress& address);

/// To the daemon, or to the workspace itself, opened here.
Result<Client> Connect(const Place& place);
/// The same for what the context belongs to.
Result<Client> Connect(const Context& context);

/// To the daemon, or to what is known of ended transactions, which needs no
/// open one.
Result<Client> ConnectArchive(const Context& context);

/// Opens the store of `place`.
Result<std::unique_ptr<Store>> OpenStore(const Place& place);

/// The workspace-relative form of path arguments.
Result<std::vector<std::string>> RelativePaths(
    const Context& context, const Place& place,
    const std::vector<std::string>& paths);

}  // namespace txfs::cli
