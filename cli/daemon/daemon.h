#pragma once

#include <functional>
#include <string>

#include "cli/rules/policy_sources.h"
#include "fs/fuse/fuse_session.h"
#include "fs/workspace/workspace.h"
#include "journal/support/result.h"

namespace txfs::cli {

struct DaemonOptions {
  WorkspaceOptions workspace;
  PolicySetup policy;
  MountOptions mount;
  std::string log_path;
  /// The process of `txfs run` for which this mount is made; 0: none. Its death
  /// ends the mount.
  pid_t supervisor = 0;
};

/// The report of a started daemon.
struct ReadyReport {
  std::string transaction;
  std::string workspace;
  bool begun = false;  ///< else resumed
  /// Id of a commit that this daemon finished for a dead process; may be "".
  std::string finished;
};

/// The log file of the daemon of `mountpoint`.
[[nodiscard]] std::string LogPath(const std::string& mountpoint);

/// Opens, mounts and serves until the mount is unmounted or SIGINT, SIGTERM or
/// SIGHUP detaches it; then drains and closes. Calls `on_ready` once, when the
/// mount is usable.
Status Serve(const DaemonOptions& options,
             const std::function<void(const ReadyReport&)>& on_ready);

/// Runs Serve in a separate process, in a new session and without this
/// process's descriptors. Returns when the mount is usable, or its error.
Result<ReadyReport> SpawnDaemon(const DaemonOptions& options);

}  // namespace txfs::cli
