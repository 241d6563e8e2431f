#include "cli/hook/own_repository.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>

#include "cli/output/paths.h"
#include "policy/ascii.h"

namespace txfs::cli {
namespace {

/// Longer settings are not read to their end.
constexpr size_t kMostSettings = size_t{1} << 20;

bool Exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

bool IsRealDirectory(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// In lower case.
std::string SettingsIn(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSettings, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return policy::Lowered(text);
}

bool HasHook(const std::string& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.c_str()),
                                                   ::closedir);
  if (stream == nullptr) return Exists(directory);
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name.ends_with(".sample")) continue;
    if (::access(JoinPath(directory, name).c_str(), X_OK) == 0) return true;
  }
  return false;
}

bool HasAny(const std::string& text,
            std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.contains(word); });
}

/// Of the user.
bool LeadsHooksElsewhere() {
  const char* home = std::getenv("HOME");
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const std::string own = home == nullptr ? "" : home;
  const std::string where =
      config != nullptr && *config != '\0' ? config : JoinPath(own, ".config");
  return HasAny(SettingsIn(JoinPath(own, ".gitconfig")), {"hookspath"}) ||
         HasAny(SettingsIn(JoinPath(where, "git/config")), {"hookspath"});
}

}  // namespace

bool IsOwnRepository(const std::string& directory, bool writes_index) {
  for (const char* variable : {"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"}) {
    if (std::getenv(variable) != nullptr) return false;
  }
  for (std::string at = directory; !at.empty() && at != "/";
       at.resize(at.rfind('/'))) {
    const std::string found = JoinPath(at, ".git");
    if (IsRealDirectory(found)) {
      if (!writes_index) return true;
      const std::string settings =
          SettingsIn(JoinPath(found, "config")) +
          SettingsIn(JoinPath(found, "config.worktree"));
      return !HasAny(settings, {"hookspath", "[include", "worktree"}) &&
             !HasHook(JoinPath(found, "hooks")) && !LeadsHooksElsewhere();
    }
    // A file or a link leads anywhere, and to git a directory with these is a
    // repository.
    if (Exists(found) ||
        (Exists(JoinPath(at, "HEAD")) && Exists(JoinPath(at, "objects")))) {
      return false;
    }
  }
  // There is none, and git says so.
  return true;
}

}  // namespace txfs::cli
