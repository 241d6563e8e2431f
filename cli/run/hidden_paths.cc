#include "cli/run/hidden_paths.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "cli/locate/workspace_record.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"

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

bool Exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

}  // namespace

Result<std::vector<std::string>> HiddenPaths(
    const std::string& home, const std::vector<std::string>& hide,
    const std::vector<std::string>& show) {
  std::vector<std::string> paths = hide;
  if (!home.empty()) {
    for (const char* name : kCredentials) {
      paths.push_back(ResolvePath(home, name));
    }
  }
  std::erase_if(paths, [&](const std::string& path) {
    return std::ranges::find(show, path) != show.end();
  });
  for (const std::string& own : {StateDirectory(), ConfigDirectory()}) {
    paths.push_back(ResolvePath("/", own));
  }
  TRY(ForEachRecord([&](const WorkspaceRecord& record) {
    if (record.store_id) paths.push_back(record.store);
  }));
  std::erase_if(paths, [](const std::string& path) { return !Exists(path); });
  std::ranges::sort(paths);
  // What lies in a hidden path is hidden with it.
  std::vector<std::string> outermost;
  for (std::string& path : paths) {
    const bool is_hidden = std::ranges::any_of(
        outermost,
        [&](const std::string& above) { return IsWithin(path, above); });
    if (!is_hidden) outermost.push_back(std::move(path));
  }
  return outermost;
}

}  // namespace txfs::cli
