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

/// A workspace as it is beneath whatever is mounted over it.
struct RealWorkspace {
  std::string path;                ///< absolute
  std::shared_ptr<UniqueFd> base;  ///< the directory itself
  /// What the user's state directory has about it; none: it has no store.
  std::optional<WorkspaceRecord> record = {};
};

/// The error of a workspace whose store is lost.
std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace);

/// Opens the workspace `path`. One that is mounted over is handed out by a
/// daemon that serves it. Errors: it is missing, or somebody else's; the mount
/// over it is dead.
Result<RealWorkspace> ReachWorkspace(const std::string& path);

/// The workspace that the mount `entry` shows.
Result<RealWorkspace> ReachWorkspaceOf(const MountEntry& entry);

/// Says, once for each workspace, that it has a store which txfs ignores.
void SayIfForeign(const RealWorkspace& workspace);

/// Where the store of `workspace` is; none when it has none yet.
[[nodiscard]] std::optional<std::string> StorePath(
    const RealWorkspace& workspace);

/// Makes the store of `workspace`, which has a record, unless it is there.
Status MakeStore(const RealWorkspace& workspace);

/// Opens the store of `workspace`; ENOENT when it has none.
Result<std::unique_ptr<Store>> OpenStore(const RealWorkspace& workspace);

}  // namespace txfs::cli
