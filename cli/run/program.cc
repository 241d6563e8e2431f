#include "cli/run/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <string_view>

#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

constexpr int kFound = 0, kNotExecutable = 126, kNotThere = 127;

/// Where txfs itself finds what the command sees at `path`; none if nothing is
/// there.
std::optional<std::string> OutsideOf(const Sandbox& sandbox,
                                     const std::string& path) {
  for (const Sandbox::Bind& bind : sandbox.binds | std::views::reverse) {
    if (const auto below = RelativeTo(path, bind.at)) {
      return JoinPath(bind.seen(), *below);
    }
  }
  const auto is_above = [&](std::string_view hidden) {
    return IsWithin(path, hidden);
  };
  constexpr std::array<std::string_view, 3> kOfTheRun = {"/tmp", "/var/tmp",
                                                         "/run"};
  if (std::ranges::any_of(kOfTheRun, is_above) ||
      std::ranges::any_of(sandbox.hidden, is_above)) {
    return std::nullopt;
  }
  return path;
}

int Look(const Sandbox& sandbox, const std::string& path) {
  const auto outside =
      OutsideOf(sandbox, MakeAbsolute(sandbox.directory, path));
  struct stat st{};
  // A link may lead to another place in the sandbox: exec finds out.
  if (!outside || ::lstat(outside->c_str(), &st) != 0) return kNotThere;
  if (S_ISLNK(st.st_mode)) return kFound;
  const bool executable =
      S_ISREG(st.st_mode) && ::access(outside->c_str(), X_OK) == 0;
  return executable ? kFound : kNotExecutable;
}

std::string PathOf(const Sandbox& sandbox) {
  for (const auto& [name, value] : sandbox.environment) {
    if (name == "PATH") return value;
  }
  return "/bin:/usr/bin";
}

}  // namespace

int FindProgram(const Sandbox& sandbox, const std::string& name) {
  if (name.empty()) return kNotThere;
  if (name.contains('/')) return Look(sandbox, name);
  int code = kNotThere;
  for (const auto part : std::views::split(PathOf(sandbox), ':')) {
    const std::string directory(part.begin(), part.end());
    const int found =
        Look(sandbox, JoinPath(directory.empty() ? "." : directory, name));
    if (found == kFound) return kFound;
    code = std::min(code, found);
  }
  return code;
}

}  // namespace txfs::cli
