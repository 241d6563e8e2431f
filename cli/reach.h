#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/connection.h"
#include "cli/reach_daemon.h"
#include "fs/mount_table.h"
#include "journal/base/result.h"
#include "journal/store.h"

namespace txfs::cli {

/// A workspace as it is beneath whatever is mounted over it.
struct RealWorkspace {
  std::string path;                       ///< absolute
  std::optional<std::string> store;       ///< when it is not in the workspace
  std::optional<std::string> lost_store;  ///< where it should be, and is not
  std::shared_ptr<UniqueFd> base;         ///< the directory itself
};

/// Whether `directory` is a store.
[[nodiscard]] bool IsStore(const std::string& directory);

/// The store of the workspace `path`, if it is not in it but known to the
/// user's registry; it may not be there. Looks at what is on top at `path`.
[[nodiscard]] std::optional<std::string> StoreElsewhere(
    const std::string& path);

/// The error of a workspace whose store is lost.
std::unexpected<Error> StoreIsLost(const RealWorkspace& workspace);

/// Opens the workspace `path`. One that is mounted over is handed out by a
/// daemon that serves it. Errors: it is missing; the mount over it is dead.
Result<RealWorkspace> ReachWorkspace(const std::string& path);

/// The workspace that the mount `entry` shows.
Result<RealWorkspace> ReachWorkspaceOf(const MountEntry& entry);

/// Where the store of `workspace` is; none when it has none yet.
[[nodiscard]] std::optional<std::string> StorePath(
    const RealWorkspace& workspace);

/// Opens the store of `workspace`; ENOENT when it has none.
Result<std::unique_ptr<Store>> OpenStore(const RealWorkspace& workspace);

}  // namespace txfs::cli
