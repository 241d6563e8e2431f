#include "cli/run/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

namespace txfs::cli {
namespace {

/// Parts of the names of secrets.
constexpr auto kSecretParts = std::to_array<std::string_view>(
    {"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY",
     "CREDENTIAL", "CONNECTION_STRING", "CONNECTIONSTRING", "CONNSTR",
     "SERVICE_ACCOUNT", "SVC_ACCOUNT", "JWT", "BEARER", "OAUTH"});

/// The same, as whole words: "API_KEY", but not "KEYMAP" or "AUTHOR".
constexpr auto kSecretWords = std::to_array<std::string_view>(
    {"KEY", "AUTH", "COOKIE", "PRIVATE", "PASS", "PAT", "DSN", "PGPASSFILE",
     "SK", "WEBHOOK", "CRED", "CREDS", "HMAC", "PEM", "TOK"});

/// The ends of names that are written without "_": "OPENAIKEY", "DBPASS".
constexpr auto kSecretEnds =
    std::to_array<std::string_view>({"KEY", "PASS", "PW", "CREDS"});

/// What begins values that are tokens, or hold one.
constexpr auto kTokenBegins = std::to_array<std::string_view>(
    {"ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk-",
     "sk_live_", "sk_test_", "AKIA", "https://hooks.", "eyJ", "Bearer ",
     "Authorization: "});

/// Names before "=" in lists of settings, such as those of a connection.
constexpr std::array<std::string_view, 6> kSecretSettings = {
    "password",   "passwd",          "pwd",
    "accountkey", "sharedaccesskey", "sharedaccesssignature"};

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

char UpperOf(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

/// Whether a URL in `value` has a password: scheme://user:password@host.
bool HasUrlWithPassword(std::string_view value) {
  constexpr std::string_view kMark = "://";
  for (size_t at; (at = value.find(kMark)) != std::string_view::npos;) {
    value.remove_prefix(at + kMark.size());
    const std::string_view authority =
        value.substr(0, value.find_first_of("/?# \t\n"));
    const size_t colon = authority.find(':');
    const size_t host = authority.rfind('@');
    if (host != std::string_view::npos && colon < host && colon + 1 != host) {
      return true;
    }
  }
  return false;
}

/// Whether `value` is a list of settings, as "a=b;c=d", with a secret.
bool HasSecretSetting(std::string_view value) {
  constexpr std::string_view kBetween = ";&? \t\n";
  while (!value.empty()) {
    const std::string_view setting =
        value.substr(0, value.find_first_of(kBetween));
    const size_t equals = setting.find('=');
    const bool is_secret =
        std::ranges::any_of(kSecretSettings, [&](std::string_view name) {
          return equals != std::string_view::npos &&
                 equals + 1 < setting.size() &&
                 std::ranges::equal(setting.substr(0, equals), name, {},
                                    UpperOf, UpperOf);
        });
    if (is_secret) return true;
    value.remove_prefix(std::min(value.size(), setting.size() + 1));
  }
  return false;
}

bool IsSecretValue(std::string_view value) {
  // "sk-SK" is a language.
  constexpr size_t kShortestToken = 20;
  const auto begins = [&](std::string_view token) {
    return value.size() >= kShortestToken && value.starts_with(token);
  };
  return std::ranges::any_of(kTokenBegins, begins) ||
         value.contains("PRIVATE KEY-----") || HasUrlWithPassword(value) ||
         HasSecretSetting(value);
}

bool LooksSecret(std::string name, std::string_view value) {
  std::ranges::transform(name, name.begin(), UpperOf);
  if (std::ranges::find(kOfSession, name) != kOfSession.end()) return true;
  // The name of a setting; git fails without it.
  if (name.starts_with("GIT_CONFIG_KEY_")) return false;
  if (IsSecretValue(value)) return true;
  // A password or, as for the shell, a directory.
  if (name.ends_with("_PWD") && !value.starts_with('/')) return true;
  const auto is_part = [&](std::string_view part) {
    return name.contains(part);
  };
  const std::string words = "_" + name + "_";
  const auto is_word = [&](std::string_view word) {
    return words.contains("_" + std::string(word) + "_");
  };
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return std::ranges::any_of(kSecretParts, is_part) ||
         std::ranges::any_of(kSecretWords, is_word) ||
         std::ranges::any_of(kSecretEnds, ends);
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
    if (LooksSecret(name, entry.substr(equals + 1)) && !passed.contains(name)) {
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
