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
};

/// What a daemon that has started says.
struct ReadyReport {
  std::string transaction;
  std::string workspace;
  bool begun = false;    ///< else resumed
  std::string finished;  ///< the commit that a process had died in; may be ""
};

/// Where the daemon of `mountpoint` logs.
[[nodiscard]] std::string LogPath(const std::string& mountpoint);

/// Opens, mounts and serves until unmounted or until SIGINT or SIGTERM, which
/// detach the mount; then drains and closes. `on_ready` is called once, when
/// the mount can be used.
Status Serve(const DaemonOptions& options,
             const std::function<void(const ReadyReport&)>& on_ready);

/// Runs Serve in a process of its own, of no terminal, without any of this
/// one's descriptors. Returns when its mount can be used, or its error.
Result<ReadyReport> SpawnDaemon(const DaemonOptions& options);

}  // namespace txfs::cli
