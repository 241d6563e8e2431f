#include "cli/run/network_names.h"

#include <arpa/inet.h>

#include <algorithm>
#include <set>

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

/// Of DNS, bytes.
constexpr size_t kMaxHostName = 253;
constexpr size_t kMaxHostLabel = 63;

constexpr std::string_view kBelow = "*.";
constexpr std::string_view kOfProfile = "profile";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsHostCharacter(char c) {
  return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-' || c == '_';
}

bool IsHostLabel(std::string_view label) {
  return !label.empty() && label.size() <= kMaxHostLabel && label[0] != '-' &&
         label.back() != '-' && std::ranges::all_of(label, IsHostCharacter);
}

/// The resolver takes a name with such a last label for an address, in one of
/// several notations.
bool IsNumber(std::string_view label) {
  return label.starts_with("0x") || std::ranges::all_of(label, IsDigit);
}

bool IsHostNamePart(std::string_view name, bool is_below) {
  if (name.size() > kMaxHostName) return false;
  std::string_view rest = name;
  for (;;) {
    const size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (!IsHostLabel(label)) return false;
    if (dot != std::string_view::npos) {
      rest.remove_prefix(dot + 1);
      continue;
    }
    if (!IsNumber(label)) return true;
    in_addr address{};
    return !is_below &&
           ::inet_pton(AF_INET, std::string(name).c_str(), &address) == 1;
  }
}

/// "HOST:PORT" of a proxy's URL; "" for one that is none.
std::string ProxyInUrl(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (url.starts_with(kScheme)) url.remove_prefix(kScheme.size());
  if (url.ends_with('/')) url.remove_suffix(1);
  const size_t colon = url.find(':');
  if (colon == std::string_view::npos) return "";
  const auto host = ParseHostName(url.substr(0, colon));
  const std::string port(url.substr(colon + 1));
  const bool is_port = !port.empty() && port.size() <= 5 &&
                       std::ranges::all_of(port, IsDigit) &&
                       std::stoul(port) - 1 < 0xffff;
  if (!host || host->starts_with(kBelow) || !is_port) return "";
  return *host + ":" + port;
}

/// Whether `name` is in `no_proxy`, as itself or below another name.
bool IsInNoProxy(std::string_view name, std::string_view no_proxy) {
  if (name.starts_with(kBelow)) name.remove_prefix(1);
  for (;;) {
    const size_t comma = no_proxy.find(',');
    std::string_view entry = no_proxy.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (entry == "*") return true;
    if (entry.starts_with('*')) entry.remove_prefix(1);
    if (entry.starts_with('.')) entry.remove_prefix(1);
    const bool is_it =
        name == entry ||
        (!entry.empty() && name.ends_with("." + std::string(entry)));
    if (is_it) return true;
    if (comma == std::string_view::npos) return false;
    no_proxy.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<std::string> ParseHostName(std::string_view text) {
  std::string name(text);
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (name.ends_with('.')) name.pop_back();
  const bool is_below = name.starts_with(kBelow);
  const std::string_view part =
      std::string_view(name).substr(is_below ? kBelow.size() : 0);
  if (IsHostNamePart(part, is_below)) return name;
  const bool is_ascii = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  return Fail(ErrorKind::kUsage, 0,
              "\"" + EscapeControls(text) + "\" is no name of a host",
              is_ascii ? "write names such as example.org, or *.example.org "
                         "for those below it, without a port"
                       : "write it in ASCII, as xn--...");
}

Result<std::vector<std::string>> ParseNetwork(
    std::string_view text, const std::vector<std::string>& of_profile) {
  std::set<std::string> names;
  for (const std::string& name : of_profile) {
    names.insert(TRY(ParseHostName(name)));
  }
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    if (word == "host" || word == "none") {
      return Fail(ErrorKind::kUsage, 0,
                  "--network is " + std::string(word) + " or names, not both",
                  "leave one of them out");
    }
    if (word != kOfProfile) names.insert(TRY(ParseHostName(word)));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (names.empty()) {
    return Fail(ErrorKind::kUsage, 0, "no profile names a host for --network",
                "name the hosts, choose a profile with --profile, or use "
                "--network=none");
  }
  return std::vector<std::string>(names.begin(), names.end());
}

std::string HostPattern(std::string_view name) {
  std::string pattern = "^";
  if (name.starts_with(kBelow)) {
    // A label, and more of them.
    pattern += "[a-z0-9_-][a-z0-9._-]*";
    name.remove_prefix(1);
  }
  for (const char c : name) {
    if (c == '.') pattern += '\\';
    pattern += c;
  }
  return pattern + "[.]*$";
}

Result<std::string> UpstreamLines(const std::vector<std::string>& names,
                                  std::string_view url,
                                  std::string_view no_proxy) {
  const std::string proxy = ProxyInUrl(url);
  if (proxy.empty()) {
    return Fail(ErrorKind::kUsage, 0,
                "--network cannot go through the proxy that http_proxy or "
                "https_proxy names",
                "write it as http://HOST:PORT, or unset the variable");
  }
  std::string lines = "Upstream http " + proxy + "\n";
  for (const std::string& name : names) {
    if (!IsInNoProxy(name, no_proxy)) continue;
    lines += "Upstream none \"" +
             name.substr(name.starts_with(kBelow) ? 1 : 0) + "\"\n";
  }
  return lines;
}

}  // namespace txfs::cli
