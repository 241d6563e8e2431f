#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/locate/reach_daemon.h"
#include "cli/locate/workspace_record.h"
#include "cli/protocol/connection.h"
#include "fs/host/mount_table.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// A workspace, beneath mounts over it.
struct RealWorkspace {
  std::string path;                ///< absolute
  std::shared_ptr<UniqueFd> base;  ///< the open directory
  /// Its record in the user's state directory; none: it has no store.
  std::optional<WorkspaceRecord> record = {};
};

/// The error of a workspace whose store is lost.
std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace);

/// Opens the workspace `path`. If it is mounted over, gets it from a daemon
/// that serves it. Errors: it is missing or another user's; the mount over it
/// is dead.
Result<RealWorkspace> ReachWorkspace(const std::string& path);

/// Opens the workspace of the mount `entry`.
Result<RealWorkspace> ReachWorkspaceOf(const MountEntry& entry);

/// Reports, once for each workspace, that txfs ignores a store in it.
void SayIfForeign(const RealWorkspace& workspace);

/// Path of the store of `workspace`; none if it has no store yet.
[[nodiscard]] std::optional<std::string> StorePath(
    const RealWorkspace& workspace);

/// Makes the store of `workspace`, which has a record, unless it exists.
Status MakeStore(const RealWorkspace& workspace);

/// Opens the store of `workspace`; ENOENT when it has none.
Result<std::unique_ptr<Store>> OpenStore(const RealWorkspace& workspace);

}  // namespace txfs::cli
