#include "cli/run/hidden_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>

#include "cli/locate/reach_daemon.h"
#include "cli/locate/workspace_record.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/host/mount_table.h"
#include "fs/host/mounted_object.h"

namespace txfs::cli {
namespace {

/// Below the home.
constexpr std::array kCredentials = {
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".pgpass",
    ".my.cnf",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".config/keepassxc",
    ".config/1Password",
    ".config/Bitwarden",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".thunderbird",
    "snap/firefox",
    "snap/chromium",
    ".var/app/org.mozilla.firefox",
    ".vault-token",
    ".terraform.d/credentials.tfrc.json",
};

/// Sockets below the home of services that act outside of the sandbox, or
/// directories of these. Others, which cannot be known, are out of reach in a
/// home that is copied on write.
constexpr std::array kSockets = {
    ".docker/run",
    ".docker/desktop",
    ".colima",
    ".rd/docker.sock",
    ".lima",
    ".orbstack",
    ".local/share/containers/podman/machine",
    ".1password",
    ".bitwarden-ssh-agent.sock",
};

/// `name` below `home`, which has no links; without looking further where the
/// home has nothing of that name, as it is with most.
std::string ResolveBelow(const std::string& home, const std::string& name) {
  struct stat st{};
  const std::string first = JoinPath(home, name.substr(0, name.find('/')));
  if (::lstat(first.c_str(), &st) != 0 && errno == ENOENT) {
    return JoinPath(home, name);
  }
  return ResolvePath(home, name);
}

using Table = std::vector<MountEntry>;

/// All names of `paths` in `table`.
std::vector<std::string> WithAllNames(const Table& table,
                                      const std::vector<std::string>& paths) {
  std::vector<std::string> names = paths;
  for (const std::string& path : paths) {
    const auto object = ObjectShownAt(table, path);
    if (!object) continue;
    std::ranges::move(PlacesOf(table, *object), std::back_inserter(names));
  }
  return names;
}

/// The names of the base of the workspace: of what is beneath a mount over it.
std::vector<std::string> NamesOfBase(const Table& table,
                                     const std::string& workspace) {
  Table beneath = table;
  std::erase_if(beneath, [&](const MountEntry& entry) {
    return entry.is_own() && entry.mountpoint == workspace;
  });
  const auto base = ObjectShownAt(beneath, workspace);
  return base ? PlacesOf(table, *base) : std::vector<std::string>();
}

/// The home, also one that the workspace has in it; "": none.
std::string HomeOfCaller() {
  std::string home = ResolvePath("/", HomeDirectory());
  return home == "/" ? "" : home;
}

/// Whether txfs made `path` to mount at.
bool IsOwnDirectory(const std::string& path) {
  return std::ranges::any_of(
      RuntimeDirectories(::geteuid()),
      [&](const std::string& directory) { return IsWithin(path, directory); });
}

/// The mountpoints of the caller's txfs mounts but those of the run, and those
/// in which its workspace or the home lies: these are read-only. ETIMEDOUT: the
/// daemon of one hangs, so that nothing can be mounted there.
Result<std::vector<std::string>> OtherMounts(const Table& table,
                                             const RunPlaces& places,
                                             const std::string& home) {
  const MountEntry* own = MountShownAt(table, places.mountpoint);
  std::vector<std::string> others;
  for (const MountEntry& entry : table) {
    if (!entry.is_own()) continue;
    if (own != nullptr && entry.device() == own->device()) continue;
    const bool is_around = IsWithin(places.workspace, entry.mountpoint) ||
                           (!home.empty() && IsWithin(home, entry.mountpoint));
    if (is_around || MountShownAt(table, entry.mountpoint) != &entry) continue;
    // Those of other runs are not in the sandbox, and come and go.
    if (!IsOwnDirectory(entry.mountpoint)) TRY(CheckAnswers(entry));
    others.push_back(entry.mountpoint);
  }
  return others;
}

/// The paths in the workspace's mount also as paths in the workspace, and the
/// other way round: the sandbox shows the one at the other.
void AddNamesInWorkspace(std::vector<std::string>& paths,
                         const RunPlaces& places) {
  std::vector<std::string> more;
  for (const std::string& path : paths) {
    if (const auto below = RelativeTo(path, places.mountpoint)) {
      more.push_back(JoinPath(places.workspace, *below));
    } else if (const auto inside = RelativeTo(path, places.workspace)) {
      more.push_back(JoinPath(places.mountpoint, *inside));
    }
  }
  std::ranges::move(more, std::back_inserter(paths));
}

/// Those of `paths` that lie in no other, in order. What is around the
/// workspace does not hide what is in it.
std::vector<std::string> Outermost(std::vector<std::string> paths,
                                   const std::string& workspace) {
  std::ranges::sort(paths);
  std::vector<std::string> outermost;
  for (std::string& path : paths) {
    const bool is_hidden =
        std::ranges::any_of(outermost, [&](const std::string& above) {
          return IsWithin(path, above) &&
                 (!IsWithin(path, workspace) || !IsWithin(workspace, above));
        });
    if (!is_hidden) outermost.push_back(std::move(path));
  }
  return outermost;
}

}  // namespace

Result<std::vector<std::string>> HiddenPaths(
    const RunPlaces& places, const std::vector<std::string>& hide,
    const std::vector<std::string>& show) {
  if (std::ranges::find(hide, "/") != hide.end()) {
    return Fail(ErrorKind::kUsage, 0, "--hide / leaves nothing to run in",
                "name a directory or file below it");
  }
  const Table table = TRY(ReadMountTable());
  const std::string home = HomeOfCaller();
  std::vector<std::string> paths = hide;
  if (!home.empty()) {
    const auto add = [&](const char* name) {
      paths.push_back(ResolveBelow(home, name));
    };
    std::ranges::for_each(kCredentials, add);
    std::ranges::for_each(kSockets, add);
  }
  const auto is_shown = [&](const std::string& path) {
    return std::ranges::find(show, path) != show.end();
  };
  std::erase_if(paths, is_shown);
  paths = WithAllNames(table, paths);
  std::erase_if(paths, is_shown);

  std::vector<std::string> own = {ResolvePath("/", StateDirectory()),
                                  ResolvePath("/", ConfigDirectory())};
  TRY(ForEachRecord([&](const WorkspaceRecord& record) {
    if (record.store_id) own.push_back(ResolvePath("/", record.store));
  }));
  std::ranges::move(WithAllNames(table, own), std::back_inserter(paths));
  std::ranges::move(TRY(OtherMounts(table, places, home)),
                    std::back_inserter(paths));
  AddNamesInWorkspace(paths, places);

  // Not the paths in the workspace: its mount covers them.
  for (std::string& path : NamesOfBase(table, places.workspace)) {
    if (!IsWithin(path, places.workspace)) paths.push_back(std::move(path));
  }
  std::erase(paths, places.workspace);
  std::erase(paths, places.mountpoint);
  if (std::ranges::find(paths, "/") != paths.end()) {
    return Fail(0,
                "the root directory is among what a run must not see, as a "
                "part of the workspace or of txfs's own files",
                "run outside of the chroot");
  }
  return Outermost(std::move(paths), places.workspace);
}

}  // namespace txfs::cli
