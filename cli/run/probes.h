#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/probe.h"

namespace txfs::cli {

/// Tries what `txfs run` needs of this machine and this user. Each function
/// does so for real, and leaves nothing behind.

/// /dev/fuse can be opened.
[[nodiscard]] Probe ProbeFuseDevice();
/// An ordinary user's mounts can be made by fusermount3.
[[nodiscard]] Probe ProbeFusermount();
/// A workspace in a temporary directory can be mounted, changed and committed.
[[nodiscard]] Probe ProbeMount();
/// The means for limits of a run: cgroups v2, v1, systemd, or none.
[[nodiscard]] Probe ProbeCgroups();
/// shfmt parses shell text.
[[nodiscard]] Probe ProbeShellParser();
/// The workspace at `directory`, or of the mount around it, is this user's, can
/// be written to, and its filesystem has the renames of a commit.
[[nodiscard]] Probe ProbeWorkspace(const std::string& directory);
/// The state directory is this user's alone.
[[nodiscard]] Probe ProbeStateDirectory();
/// A store at `path` can be locked and has space. Missing directories are
/// those that would be made. `name`: of the probe.
[[nodiscard]] Probe ProbeStore(const char* name, const std::string& path);
/// txfs mounts of this user whose daemon died.
[[nodiscard]] Probe ProbeDeadMounts();
/// What runs that were killed left in the directories of txfs.
[[nodiscard]] Probe ProbeLeftovers();

/// All probes, also those of the sandbox. `directory`: of the workspace,
/// absolute. `store`: of --store.
[[nodiscard]] std::vector<Probe> ProbeAll(
    const std::string& directory, const std::optional<std::string>& store);

}  // namespace txfs::cli
