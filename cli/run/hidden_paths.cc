#include "cli/run/hidden_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <ranges>
#include <string_view>
#include <utility>

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

/// Variables that name a credential, or by a list with colons several; with
/// `below`, a directory that has one.
struct CredentialVariable {
  const char* variable;
  const char* below = "";
};
constexpr std::array<CredentialVariable, 18> kCredentialVariables = {{
    {"AWS_CONFIG_FILE"},
    {"AWS_SHARED_CREDENTIALS_FILE"},
    {"AZURE_CONFIG_DIR"},
    {"CARGO_HOME", "credentials"},
    {"CARGO_HOME", "credentials.toml"},
    {"CLOUDSDK_CONFIG"},
    {"DOCKER_CONFIG", "config.json"},
    {"GH_CONFIG_DIR"},
    {"GNUPGHOME"},
    {"GOOGLE_APPLICATION_CREDENTIALS"},
    {"KUBECONFIG"},
    {"NETRC"},
    {"NPM_CONFIG_USERCONFIG"},
    {"npm_config_userconfig"},
    {"PASSWORD_STORE_DIR"},
    {"PGPASSFILE"},
    {"REGISTRY_AUTH_FILE"},
    {"TF_CLI_CONFIG_FILE"},
}};

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

/// The parts of `list` between colons.
std::vector<std::string> Parts(const std::string& list) {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(list, ':')) {
    parts.emplace_back(part.begin(), part.end());
  }
  return parts;
}

/// The paths of credentials that the variables of the caller name and that are
/// there.
std::vector<std::string> CredentialsOfVariables() {
  std::vector<std::string> named;
  for (const auto& [variable, below] : kCredentialVariables) {
    const char* value = ::getenv(variable);
    if (value == nullptr) continue;
    for (const std::string& part : Parts(value)) {
      named.push_back(*below == '\0' ? part : JoinPath(part, below));
    }
  }
  // Where the directories of the XDG specification are others.
  const std::pair<const char*, std::string_view> directories[] = {
      {"XDG_CONFIG_HOME", ".config/"}, {"XDG_DATA_HOME", ".local/share/"}};
  for (const auto& [variable, usual] : directories) {
    const char* value = ::getenv(variable);
    if (value == nullptr) continue;
    for (const std::string_view name : kCredentials) {
      if (!name.starts_with(usual)) continue;
      named.push_back(JoinPath(value, std::string(name.substr(usual.size()))));
    }
  }
  std::vector<std::string> paths;
  for (const std::string& name : named) {
    if (!name.starts_with('/')) continue;
    std::string path = ResolvePath("/", name);
    struct stat st{};
    // Not /dev/null, which turns a file of settings off.
    const bool is_one = ::stat(path.c_str(), &st) == 0 &&
                        (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    if (is_one) paths.push_back(std::move(path));
  }
  return paths;
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
  for (std::string& path : CredentialsOfVariables()) {
    // A mistake in a variable must not take everything away.
    const bool is_around = IsWithin(places.workspace, path) ||
                           (!home.empty() && IsWithin(home, path));
    if (!is_around) paths.push_back(std::move(path));
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
