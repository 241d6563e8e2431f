#include "cli/run/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace txfs::cli {
namespace {

/// Parts of the names of secrets.
constexpr std::array<std::string_view, 7> kSecretParts = {
    "TOKEN",      "SECRET", "PASSWORD",  "PASSWD",
    "PASSPHRASE", "APIKEY", "CREDENTIAL"};

/// The same, as whole words: "API_KEY", but not "KEYMAP" or "AUTHOR".
constexpr std::array<std::string_view, 9> kSecretWords = {
    "KEY", "AUTH", "COOKIE",  "PRIVATE",   "PASS",
    "PAT", "DSN",  "SSHPASS", "PGPASSFILE"};

/// They name the directory for temporary files.
constexpr std::array<std::string_view, 4> kTemporary = {"TMPDIR", "TMP", "TEMP",
                                                        "TEMPDIR"};

/// They lead to sockets of the session, which are not in the sandbox.
constexpr std::array<std::string_view, 11> kOfSession = {
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
    "WAYLAND_DISPLAY",
    "DISPLAY",
    "MYSQL_PWD"};

bool LooksSecret(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  if (std::ranges::find(kOfSession, name) != kOfSession.end()) return true;
  // The name of a setting; git fails without it.
  if (name.starts_with("GIT_CONFIG_KEY_")) return false;
  const auto is_part = [&](std::string_view part) {
    return name.contains(part);
  };
  const std::string words = "_" + name + "_";
  const auto is_word = [&](std::string_view word) {
    return words.contains("_" + std::string(word) + "_");
  };
  return std::ranges::any_of(kSecretParts, is_part) ||
         std::ranges::any_of(kSecretWords, is_word);
}

}  // namespace

Environment MakeEnvironment(const char* const* environ,
                            const std::vector<std::string>& given,
                            bool sandboxed) {
  std::set<std::string> passed;
  std::map<std::string, std::string> set;
  for (const std::string& word : given) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) {
      passed.insert(word);
    } else {
      set[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  Environment environment;
  const auto is_given = [&](const std::string& name) {
    return set.contains(name) || passed.contains(name);
  };
  for (; environ != nullptr && *environ != nullptr; ++environ) {
    const std::string_view entry(*environ);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string name(entry.substr(0, equals));
    if (set.contains(name)) continue;
    const bool is_temporary =
        std::ranges::find(kTemporary, name) != kTemporary.end();
    if (is_temporary && sandboxed && !is_given(name)) {
      environment.variables.emplace_back(name, "/tmp");
      continue;
    }
    if (LooksSecret(name) && !passed.contains(name)) {
      environment.dropped.push_back(name);
      continue;
    }
    environment.variables.emplace_back(name, entry.substr(equals + 1));
  }
  std::ranges::copy(set, std::back_inserter(environment.variables));
  std::ranges::sort(environment.dropped);
  return environment;
}

}  // namespace txfs::cli
