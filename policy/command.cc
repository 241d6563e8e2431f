#include "policy/command.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, kRegions> kRegionNames{
    "workspace", "temp", "home", "device", "outside", "root", "unknown"};
constexpr std::array<std::string_view, 4> kClassNames{
    "undoable", "confined", "unknown", "irreversible"};
constexpr std::array<std::string_view, 4> kScriptNames{"none", "input", "code",
                                                       "unknown"};

template <class Enum, size_t kSize>
std::optional<Enum> Named(const std::array<std::string_view, kSize>& names,
                          std::string_view name) {
  const auto* const found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

bool IsBelow(std::string_view path, std::string_view directory) {
  if (directory.empty()) return false;
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

/// Devices that keep nothing, or that belong to the process.
bool KeepsNothing(std::string_view device) {
  constexpr std::array<std::string_view, 13> kHarmless{
      "null",   "zero",   "full", "random",  "urandom", "tty", "stdin",
      "stdout", "stderr", "fd",   "console", "ptmx",    "tcp"};
  return std::ranges::find(kHarmless, device) != kHarmless.end();
}

Region RegionOfDevice(std::string_view path) {
  const std::string_view rest = path.substr(std::string_view("/dev/").size());
  if (IsBelow(path, "/dev/shm")) return Region::kTemporary;
  const std::string_view first = rest.substr(0, rest.find('/'));
  if (KeepsNothing(first) || first == "udp" || first == "pts") {
    return Region::kTemporary;
  }
  return Region::kDevice;
}

/// A directory of homes, or a home.
bool IsWholeHome(std::string_view path, const Surroundings& surroundings) {
  if (path == "/home" || path == "/root" || path == "/Users") return true;
  if (IsBelow(surroundings.home, path)) return true;
  const auto below = BelowHome(path, surroundings);
  return below && below->empty();
}

/// Where pattern characters begin a component, and all after it: "/a/*/b" is in
/// "/a".
std::string_view WithoutPattern(std::string_view text) {
  const size_t at = text.find_first_of("*?[");
  if (at == std::string_view::npos) return text;
  const size_t slash = text.substr(0, at).rfind('/');
  if (slash == std::string_view::npos) return "";
  return text.substr(0, std::max<size_t>(slash, 1));
}

/// The part of an argument that may be a path.
struct Candidate {
  size_t begin = 0;
  bool found = false;
};

bool IsNameOfValue(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
           c == '[' || c == ']';
  });
}

Candidate CandidateIn(std::string_view text) {
  Candidate candidate{.begin = 0, .found = true};
  const size_t equals = text.find('=');
  if (text.starts_with('-')) {
    if (text.starts_with("--") || equals != std::string_view::npos) {
      if (equals == std::string_view::npos) return {};
      candidate.begin = equals + 1;
    } else {
      // "-o/dev/sda", and no other letters: what follows them is no path.
      const size_t at = text.find_first_of("/~@");
      if (at != 2) return {};
      candidate.begin = at;
    }
  } else if (equals != std::string_view::npos &&
             IsNameOfValue(text.substr(0, equals))) {
    candidate.begin = equals + 1;
  }
  // "@FILE", and "<FILE" in a form.
  const std::string_view rest = text.substr(candidate.begin);
  const bool is_form = candidate.begin > 0 && rest.starts_with('<');
  if (rest.starts_with('@') || is_form) ++candidate.begin;
  if (text.substr(candidate.begin).starts_with("file://")) {
    candidate.begin += std::string_view("file://").size();
  }
  candidate.found = candidate.begin < text.size();
  return candidate;
}

/// URLs, and paths of other machines.
bool IsElsewhere(std::string_view path) {
  if (path.contains("://")) return true;
  const size_t colon = path.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         path.find('/') > colon && IsNameOfValue(path.substr(0, colon)) &&
         path.size() > colon + 1;
}

}  // namespace

std::string_view NameOf(Region region) {
  return kRegionNames.at(static_cast<size_t>(region));
}
std::optional<Region> RegionNamed(std::string_view name) {
  return Named<Region>(kRegionNames, name);
}
std::string_view NameOf(Class one) {
  return kClassNames.at(static_cast<size_t>(one));
}
std::optional<Class> ClassNamed(std::string_view name) {
  return Named<Class>(kClassNames, name);
}
std::string_view NameOf(Script script) {
  return kScriptNames.at(static_cast<size_t>(script));
}
std::optional<Script> ScriptNamed(std::string_view name) {
  return Named<Script>(kScriptNames, name);
}

Word KnownWord(std::string text) {
  const size_t size = text.size();
  return {.text = std::move(text), .known = true, .known_prefix = size};
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string NormalPath(std::string_view directory, std::string_view path) {
  std::vector<std::string_view> parts;
  const auto add = [&](std::string_view some) {
    for (const auto part : std::views::split(some, '/')) {
      const std::string_view name(part.begin(), part.end());
      if (name.empty() || name == ".") continue;
      if (name != "..") {
        parts.push_back(name);
      } else if (!parts.empty()) {
        parts.pop_back();
      }
    }
  };
  if (!path.starts_with('/')) add(directory);
  add(path);
  std::string normal;
  for (const std::string_view part : parts) {
    normal += '/';
    normal += part;
  }
  return normal.empty() ? "/" : normal;
}

std::optional<std::string_view> BelowHome(std::string_view path,
                                          const Surroundings& surroundings) {
  const auto rest = [&](size_t size) {
    return path.substr(std::min(size + 1, path.size()));
  };
  if (surroundings.home != "/" && IsBelow(path, surroundings.home)) {
    return rest(surroundings.home.size());
  }
  if (IsBelow(path, "/root")) return rest(5);
  for (const std::string_view homes : {"/home/", "/Users/"}) {
    if (!path.starts_with(homes) || path.size() == homes.size()) continue;
    return rest(std::min(path.find('/', homes.size()), path.size()));
  }
  return std::nullopt;
}

Region RegionOf(std::string_view path, const Surroundings& surroundings) {
  const std::string_view workspace = surroundings.workspace;
  if (surroundings.is_workspace && IsBelow(path, workspace)) {
    return Region::kWorkspace;
  }
  if (path == "/" || IsWholeHome(path, surroundings) ||
      (path != workspace && IsBelow(workspace, path) && path != "/tmp" &&
       path != "/var/tmp")) {
    return Region::kRoot;
  }
  if (workspace != "/" && IsBelow(path, workspace)) return Region::kWorkspace;
  if (surroundings.home != "/" && IsBelow(path, surroundings.home)) {
    return Region::kHome;
  }
  if (IsBelow(path, "/tmp") || IsBelow(path, "/var/tmp") ||
      IsBelow(path, surroundings.temporary)) {
    return Region::kTemporary;
  }
  if (path.starts_with("/dev/")) return RegionOfDevice(path);
  return BelowHome(path, surroundings) ? Region::kHome : Region::kOutside;
}

namespace {

/// The first name of `path` below `directory`.
std::string_view NameBelow(std::string_view path, std::string_view directory) {
  path.remove_prefix(std::min(path.size(), directory.size() + 1));
  return path.substr(0, path.find('/'));
}

/// Whether a pattern matches no name but by what it says of it.
bool SaysSomething(std::string_view pattern) {
  bool in_set = false;
  for (const char c : pattern) {
    if (c == '[') in_set = true;
    const bool counts = !in_set && !std::string_view("*?.![]").contains(c);
    if (counts) return true;
    if (c == ']') in_set = false;
  }
  return false;
}

/// What the pattern in `path` matches in `directory`, as a path: "~/*.bak" is
/// some of a home, and not all of it. None if it may be all of it, or what has
/// the workspace or the home in it.
std::optional<std::string> SomeIn(const std::string& directory,
                                  std::string_view path,
                                  const Surroundings& surroundings) {
  if (directory == "/" || !IsBelow(path, directory)) return std::nullopt;
  const std::string name(NameBelow(path, directory));
  if (name.find_first_of("*?[") == std::string::npos || !SaysSomething(name)) {
    return std::nullopt;
  }
  for (const std::string& kept : {surroundings.workspace, surroundings.home}) {
    if (!IsBelow(kept, directory) || kept == directory) continue;
    const std::string other(NameBelow(kept, directory));
    if (::fnmatch(name.c_str(), other.c_str(), 0) == 0) return std::nullopt;
  }
  return directory + "/" + name;
}

}  // namespace

std::optional<PathArgument> PathIn(const Word& word, std::string_view directory,
                                   const Surroundings& surroundings) {
  const auto [begin, found] = CandidateIn(word.text);
  if (!found) return std::nullopt;
  std::string text = word.text.substr(begin);
  // "file=@FILE;type=text/plain"
  if (begin > 1) text = text.substr(0, text.find(";type="));
  if (IsElsewhere(text)) return std::nullopt;
  PathArgument argument{.path = text, .region = Region::kUnknown};
  if (text == "~" || text.starts_with("~/")) {
    text.replace(0, 1, surroundings.home);
  }
  // What follows an unknown part counts as a name in the directory before it.
  const size_t known =
      word.known
          ? text.size()
          : std::min(text.size(),
                     word.known_prefix - std::min(begin, word.known_prefix));
  std::string_view prefix = std::string_view(text).substr(0, known);
  if (!word.known) {
    const size_t slash = prefix.rfind('/');
    if (slash == std::string_view::npos) return argument;
    prefix = prefix.substr(0, slash + 1);
    // "/$NAME" is the root where the variable is empty.
    if (prefix == "/") return argument;
  } else if (!word.quoted) {
    const size_t at = prefix.find_first_of("*?[");
    // Above what a pattern matches is anywhere.
    if (at != std::string_view::npos && prefix.substr(at).contains("/..")) {
      return argument;
    }
    prefix = WithoutPattern(prefix);
  }
  if (directory.empty() && !text.starts_with('/')) return argument;
  argument.path = NormalPath(directory, text);
  const std::string normal = NormalPath(directory, prefix);
  argument.region = RegionOf(normal, surroundings);
  if (word.known && !word.quoted && argument.region == Region::kRoot) {
    const auto some = SomeIn(normal, argument.path, surroundings);
    if (some) argument.region = RegionOf(*some, surroundings);
  }
  return argument;
}

namespace {

/// Whether the first operand of `command` is a mode, an owner or a pattern.
bool BeginsWithNoPath(const Command& command) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"chmod", "chown", "chgrp", "chattr", "sed", "grep", "egrep", "fgrep",
       "rg", "awk", "gawk", "mawk"});
  constexpr auto kOtherwise = std::to_array<std::string_view>(
      {"--reference", "-e", "-f", "--expression", "--file", "--regexp"});
  const std::string_view name = BaseName(command.program.text);
  if (std::ranges::find(kPrograms, name) == kPrograms.end()) return false;
  return std::ranges::none_of(command.arguments, [&](const Word& word) {
    const std::string_view text = word.text;
    return std::ranges::find(kOtherwise, text.substr(0, text.find('='))) !=
           kOtherwise.end();
  });
}

/// Whether `text` is the mode of `chmod -x` and the like, and no option.
bool IsRemovedMode(std::string_view text) {
  return text.size() > 1 && text[0] == '-' &&
         text.find_first_not_of("rwxXst", 1) == std::string_view::npos;
}

/// Moves to the end what is written wherever it stands: `cp -t DIR FILE`, `dd
/// of=FILE if=FILE`.
void PutTargetLast(Command& command) {
  const std::string_view name = BaseName(command.program.text);
  constexpr auto kCopies =
      std::to_array<std::string_view>({"cp", "mv", "install", "ln"});
  const bool copies = std::ranges::find(kCopies, name) != kCopies.end();
  const auto is_target = [&](const PathArgument& path) {
    const std::string_view text = command.arguments[path.argument].text;
    if (name == "dd") return text.starts_with("of=");
    if (!copies) return false;
    if (text.starts_with("--target-directory=")) return true;
    if (path.argument == 0) return false;
    const std::string_view before = command.arguments[path.argument - 1].text;
    return before == "--target-directory" ||
           (before.size() > 1 && before[0] == '-' && before[1] != '-' &&
            before.ends_with('t'));
  };
  const auto target = std::ranges::find_if(command.paths, is_target);
  if (target == command.paths.end()) return;
  std::rotate(target, target + 1, command.paths.end());
  PathArgument& last = command.paths.back();
  // As an operand, although an option names it.
  if (command.arguments[last.argument].text.starts_with('-')) {
    last.argument = kNoArgument;
  }
}

/// Whether it serves the directory in which it runs, unless it names another.
bool ServesDirectory(const Command& command) {
  constexpr auto kServers = std::to_array<std::string_view>(
      {"http.server", "SimpleHTTPServer", "http-server", "serve", "httpd",
       "live-server", "servor", "php", "ruby", "caddy"});
  constexpr auto kOptions = std::to_array<std::string_view>(
      {"-d", "--directory", "-t", "--docroot", "-h", "--root"});
  const std::string_view name = BaseName(command.program.text);
  if (std::ranges::find(kServers, name) == kServers.end()) return false;
  return std::ranges::none_of(command.arguments, [&](const Word& word) {
    const std::string_view text = word.text;
    return std::ranges::find(kOptions, text.substr(0, text.find('='))) !=
           kOptions.end();
  });
}

/// The part of the argument at `i` that may be a path: behind "NAME@" where
/// that means the content of a file.
Word FileIn(const Command& command, size_t i) {
  Word word = command.arguments[i];
  const std::string_view name = BaseName(command.program.text);
  constexpr auto kForms =
      std::to_array<std::string_view>({"http", "https", "xh", "xhs", "curlie"});
  const bool is_form = std::ranges::find(kForms, name) != kForms.end() &&
                       !word.text.contains("://");
  const bool is_data = name == "curl" && i > 0 &&
                       command.arguments[i - 1].text == "--data-urlencode";
  const size_t at = word.text.find('@');
  if ((!is_form && !is_data) || at == std::string::npos) return word;
  word.text.erase(0, at);
  word.known_prefix -= std::min(at, word.known_prefix);
  return word;
}

}  // namespace

void FindPaths(Command& command, const Surroundings& surroundings) {
  command.paths.clear();
  bool operands_only = false;
  bool skips_operand = BeginsWithNoPath(command);
  const std::string_view name = BaseName(command.program.text);
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const Word& word = command.arguments[i];
    if (skips_operand) {
      const bool is_mode =
          (name == "chmod" && IsRemovedMode(word.text)) ||
          (name == "chattr" && word.text.find_first_of("+-=") == 0 &&
           word.text.size() > 1 && word.text != "-R" && word.text != "-V" &&
           word.text != "-f");
      const bool is_operand = !word.text.starts_with('-');
      if (is_mode || is_operand) {
        skips_operand = false;
        continue;
      }
    }
    if (word.text == "--" && !operands_only) {
      operands_only = true;
      continue;
    }
    auto path = PathIn(FileIn(command, i), command.directory, surroundings);
    if (!path && operands_only && !word.text.empty()) {
      path = PathIn({.text = "./" + word.text,
                     .known = word.known,
                     .quoted = word.quoted,
                     .known_prefix = word.known_prefix + 2},
                    command.directory, surroundings);
    }
    if (!path) continue;
    path->argument = i;
    command.paths.push_back(*std::move(path));
  }
  PutTargetLast(command);
  if (!command.directory.empty() && ServesDirectory(command)) {
    command.paths.push_back(
        {.path = command.directory,
         .region = RegionOf(command.directory, surroundings),
         .argument = kNoArgument});
  }
}

}  // namespace txfs::policy
