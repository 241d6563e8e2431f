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
#include <ranges>
#include <string_view>
#include <vector>

#include "cli/hook/git_index.h"
#include "cli/output/paths.h"
#include "policy/ascii.h"
#include "policy/command.h"
#include "policy/content.h"

namespace txfs::cli {
namespace {

/// Longer files are not read to their end.
constexpr size_t kMostSettings = size_t{1} << 20;
constexpr size_t kMostIndex = size_t{64} << 20;
/// More directories are not looked at.
constexpr size_t kMostDirectories = 1000;

bool IsThere(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

bool IsRealDirectory(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// The file, of at most `most` bytes; none: it is longer, or no regular file,
/// which could keep the reader waiting. "": there is none.
std::optional<std::string> TextOf(const std::string& path, size_t most) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return "";
  const auto size = static_cast<size_t>(st.st_size);
  if (!S_ISREG(st.st_mode) || size > most) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
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
  if (IsThere(directory) && !IsRealDirectory(directory)) return true;
  return AnyEntry(directory, [&](const dirent& entry) {
    const std::string name = entry.d_name;
    return !name.ends_with(".sample") &&
           ::access(JoinPath(directory, name).c_str(), X_OK) == 0;
  });
}

/// Whether a configuration of the user or of the machine leads hooks elsewhere,
/// or to other files.
bool LeadsHooksElsewhere() {
  const char* home = std::getenv("HOME");
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const std::string own = home == nullptr ? "" : home;
  const std::string where =
      config != nullptr && *config != '\0' ? config : JoinPath(own, ".config");
  for (const std::string& path :
       {std::string("/etc/gitconfig"), JoinPath(own, ".gitconfig"),
        JoinPath(where, "git/config")}) {
    const auto text = TextOf(path, kMostSettings);
    if (!text) return true;
    const std::string lower = policy::Lowered(*text);
    if (lower.contains("hookspath") || lower.contains("[include")) return true;
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

/// Whether the settings of the repository `git` run nothing, lead nowhere, get
/// no objects from elsewhere, and look into no submodule.
bool HasHarmlessSettings(const std::string& git) {
  const auto text = TextOf(JoinPath(git, "config"), kMostSettings);
  if (!text || !policy::RiskySettings("", *text).empty()) return false;
  return std::ranges::none_of(
      policy::ReadGitSettings(*text), [](const policy::GitSetting& setting) {
        return setting.section == "submodule" ||
               setting.name.contains("submodule") ||
               setting.name == "promisor" || setting.name == "partialclone" ||
               setting.name == "partialclonefilter";
      });
}

/// Whether what git reads and writes in the directory `git` is there, and not
/// elsewhere.
bool IsWhole(const std::string& git) {
  constexpr auto kLeading = std::to_array<std::string_view>(
      {"commondir", "gitdir", "config.worktree", "modules", "rebase-merge",
       "rebase-apply", "alternates", "http-alternates", "grafts"});
  for (const std::string_view below :
       {"", "refs", "refs/heads", "refs/tags", "logs", "logs/refs", "objects",
        "objects/info", "objects/pack", "info"}) {
    const std::string directory = JoinPath(git, below);
    const bool leads = AnyEntry(directory, [&](const dirent& entry) {
      const std::string_view name = entry.d_name;
      if (name.starts_with("sharedindex.") ||
          std::ranges::find(kLeading, name) != kLeading.end()) {
        return true;
      }
      struct stat st{};
      return entry.d_type == DT_LNK ||
             (entry.d_type == DT_UNKNOWN &&
              (::lstat(JoinPath(directory, name).c_str(), &st) != 0 ||
               S_ISLNK(st.st_mode)));
    });
    if (leads) return false;
  }
  const auto head = TextOf(JoinPath(git, "HEAD"), kMostSettings);
  return head && !head->empty() && IsRealDirectory(JoinPath(git, "objects")) &&
         IsRealDirectory(JoinPath(git, "refs"));
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
  if (!IsWhole(git) || !HasHarmlessSettings(git)) return false;
  const auto index = TextOf(JoinPath(git, "index"), kMostIndex);
  if (!index || !IsPlainIndex(*index)) return false;
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
    // To git, a directory with one of these may be a repository.
    if (IsThere(JoinPath(at, "HEAD")) || IsThere(JoinPath(at, "commondir"))) {
      return false;
    }
    if (IsRealDirectory(found)) return IsHarmless(at, use);
    // A file or a link leads anywhere.
    if (IsThere(found)) return false;
  }
  // There is none, and git says so.
  return true;
}

bool IsOfGit(std::string_view path) {
  const std::string_view name = policy::BaseName(path);
  return name == "HEAD" || name == "commondir" ||
         std::ranges::any_of(std::views::split(path, '/'), [](auto&& part) {
           return policy::Lowered({part.begin(), part.end()}) == ".git";
         });
}

}  // namespace txfs::cli
