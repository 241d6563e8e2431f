#include "cli/hook/own_repository.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/output/paths.h"
#include "policy/ascii.h"
#include "policy/content.h"

namespace txfs::cli {
namespace {

/// Longer files are not read to their end.
constexpr size_t kMostSettings = size_t{1} << 20;
constexpr size_t kMostIndex = size_t{64} << 20;
/// More directories are not looked at.
constexpr size_t kMostDirectories = 1000;

bool Exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

bool IsRealDirectory(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// At most `most` bytes of the file; none: it is longer. "": there is none.
std::optional<std::string> TextOf(const std::string& path, size_t most) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const auto size = static_cast<std::streamoff>(file.tellg());
  if (size < 0 || static_cast<size_t>(size) > most) return std::nullopt;
  std::string text(static_cast<size_t>(size), '\0');
  file.seekg(0);
  file.read(text.data(), size);
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

/// Whether `look` is true for the name of one of the entries of `directory`.
bool AnyEntry(const std::string& directory,
              const std::function<bool(const dirent&)>& look) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()),
                                                   ::closedir);
  if (stream == nullptr) return false;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && look(*entry)) return true;
  }
  return false;
}

bool HasHook(const std::string& directory) {
  if (Exists(directory) && !IsRealDirectory(directory)) return true;
  return AnyEntry(directory, [&](const dirent& entry) {
    const std::string name = entry.d_name;
    return !name.ends_with(".sample") &&
           ::access(JoinPath(directory, name).c_str(), X_OK) == 0;
  });
}

/// Whether a configuration of the user leads hooks elsewhere.
bool LeadsHooksElsewhere() {
  const char* home = std::getenv("HOME");
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const std::string own = home == nullptr ? "" : home;
  const std::string where =
      config != nullptr && *config != '\0' ? config : JoinPath(own, ".config");
  for (const std::string& path :
       {JoinPath(own, ".gitconfig"), JoinPath(where, "git/config")}) {
    const auto text = TextOf(path, kMostSettings);
    if (!text || policy::Lowered(*text).contains("hookspath")) return true;
  }
  return false;
}

/// Whether the environment leads git elsewhere, or gives it settings.
bool IsLedByEnvironment() {
  constexpr auto kHarmless = std::to_array<std::string_view>(
      {"EDITOR", "SEQUENCE_EDITOR", "PAGER", "ASKPASS", "TERMINAL_PROMPT",
       "OPTIONAL_LOCKS", "SSH", "SSH_COMMAND", "CONFIG_NOSYSTEM",
       "MERGE_AUTOEDIT", "LFS_SKIP_SMUDGE"});
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (!text.starts_with("GIT_")) continue;
    text.remove_prefix(std::string_view("GIT_").size());
    const std::string_view name = text.substr(0, text.find('='));
    const bool is_harmless =
        name.starts_with("AUTHOR_") || name.starts_with("COMMITTER_") ||
        name.starts_with("SSL_") ||
        std::ranges::find(kHarmless, name) != kHarmless.end();
    if (!is_harmless) return true;
  }
  return false;
}

/// Whether the settings of the repository `git` run nothing, lead nowhere, and
/// get no objects from elsewhere.
bool HasHarmlessSettings(const std::string& git) {
  const auto text = TextOf(JoinPath(git, "config"), kMostSettings);
  if (!text || !policy::RiskySettings("", *text).empty()) return false;
  return std::ranges::none_of(
      policy::ReadGitSettings(*text), [](const policy::GitSetting& setting) {
        return setting.name == "promisor" || setting.name == "partialclone" ||
               setting.name == "partialclonefilter";
      });
}

/// Whether the index of the repository `git` has submodules, or more than is
/// looked at.
bool MayHaveSubmodules(const std::string& git) {
  const auto index = TextOf(JoinPath(git, "index"), kMostIndex);
  // The mode of a submodule, as it is in the index (git's
  // Documentation/gitformat-index.txt).
  return !index || index->contains(std::string_view("\0\0\xE0\0", 4));
}

/// Whether there are repositories below `root`, or more than is looked at.
bool MayHaveRepositories(const std::string& root) {
  std::vector<std::string> directories = {root};
  for (size_t i = 0; i < directories.size(); ++i) {
    const std::string directory = directories[i];
    const bool is_repository = AnyEntry(directory, [&](const dirent& entry) {
      const std::string name = entry.d_name;
      if (name == ".git") return i > 0;
      if (entry.d_type == DT_DIR || entry.d_type == DT_UNKNOWN) {
        directories.push_back(JoinPath(directory, name));
      }
      return false;
    });
    if (is_repository || directories.size() > kMostDirectories) return true;
  }
  return false;
}

bool IsHarmless(const std::string& root, const GitIndexUse& use) {
  const std::string git = JoinPath(root, ".git");
  // What leads it to settings or to an index elsewhere.
  const bool is_led = AnyEntry(git, [](const dirent& entry) {
    const std::string_view name = entry.d_name;
    return name == "commondir" || name == "gitdir" ||
           name == "config.worktree" || name.starts_with("sharedindex.");
  });
  if (is_led || !HasHarmlessSettings(git) || MayHaveSubmodules(git)) {
    return false;
  }
  if (use.index_changes && MayHaveRepositories(root)) return false;
  return !use.writes_index ||
         (!HasHook(JoinPath(git, "hooks")) && !LeadsHooksElsewhere());
}

}  // namespace

bool IsOwnRepository(const std::string& directory, const GitIndexUse& use) {
  if (IsLedByEnvironment()) return false;
  for (std::string at = directory; !at.empty() && at != "/";
       at.resize(at.rfind('/'))) {
    const std::string found = JoinPath(at, ".git");
    if (IsRealDirectory(found)) return IsHarmless(at, use);
    // A file or a link leads anywhere, and to git a directory with one of these
    // may be a repository.
    if (Exists(found) || Exists(JoinPath(at, "HEAD")) ||
        Exists(JoinPath(at, "commondir"))) {
      return false;
    }
  }
  // There is none, and git says so.
  return true;
}

}  // namespace txfs::cli
