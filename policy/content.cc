#include "policy/content.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, 5> kContentKinds{
    "any", "git-config", "git-file", "git-bare", "python-path"};

std::vector<std::string_view> LinesIn(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool IsEmptyLine(std::string_view line) {
  return line.find_first_not_of(" \t\v\f\r\n") == std::string_view::npos;
}

/// Those lines that are more often in `after` than in `before`.
std::vector<std::string> NewLines(const std::vector<std::string_view>& before,
                                  const std::vector<std::string_view>& after) {
  std::map<std::string_view, size_t> old;
  for (const std::string_view line : before) ++old[line];
  std::vector<std::string> fresh;
  for (const std::string_view line : after) {
    const auto found = old.find(line);
    if (found != old.end() && found->second > 0) {
      --found->second;
    } else if (!IsEmptyLine(line)) {
      fresh.emplace_back(line);
    }
  }
  return fresh;
}

/// The lines that begin with "import". Python also ends a line at other
/// characters than a newline, so each one that is no plain text counts.
std::vector<std::string_view> ImportLines(std::string_view text) {
  const auto ends_line = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte >= 0x7f;
  };
  std::vector<std::string_view> lines;
  constexpr std::string_view kImport = "import";
  for (size_t at = text.find(kImport); at != std::string_view::npos;
       at = text.find(kImport, at + 1)) {
    const size_t next = at + kImport.size();
    const bool begins = at == 0 || ends_line(text[at - 1]);
    const bool runs =
        next < text.size() && (text[next] == ' ' || text[next] == '\t');
    if (!begins || !runs) continue;
    const auto* const end = std::ranges::find_if(text.substr(at), ends_line);
    lines.emplace_back(text.data() + at, end);
  }
  return lines;
}

/// The names in `path`, without ".".
std::vector<std::string_view> NamesIn(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!name.empty() && name != ".") names.push_back(name);
  }
  return names;
}

/// `path` from the directory `directory` of the workspace, without "." and
/// ".."; none: outside, or not known: a name before ".." may be a symbolic
/// link.
std::optional<std::string> InWorkspace(std::string_view directory,
                                       std::string_view path,
                                       std::string_view workspace) {
  std::vector<std::string_view> names;
  std::string_view rest = path;
  if (path.starts_with('/')) {
    const bool is_below = path.starts_with(workspace) &&
                          path.substr(workspace.size()).starts_with('/');
    if (!is_below) return std::nullopt;
    rest.remove_prefix(workspace.size());
  } else {
    names = NamesIn(directory);
  }
  bool has_name = path.starts_with('/');
  for (const std::string_view name : NamesIn(rest)) {
    if (name != "..") {
      has_name = true;
      names.push_back(name);
      continue;
    }
    if (has_name || names.empty()) return std::nullopt;
    names.pop_back();
  }
  std::string normal;
  for (const std::string_view name : names) {
    normal += (normal.empty() ? "" : "/") + std::string(name);
  }
  return normal;
}

/// The rules hold links, settings and hooks in these directories, so that a
/// file that leads there leads to nothing that was not looked at. In branches
/// and logs they hold no hooks, in any case of letters, and below worktrees
/// only those of the worktrees themselves.
bool IsOwnRepository(const std::string& path) {
  constexpr std::string_view kWorktrees = ".git/worktrees/";
  if (path == ".git") return true;
  if (path.starts_with(kWorktrees)) {
    return path.find('/', kWorktrees.size()) == std::string::npos;
  }
  const std::string whole = Lowered(path) + "/";
  return path.starts_with(".git/modules/") &&
         whole.find("/refs/") == std::string::npos &&
         whole.find("/logs/") == std::string::npos;
}

std::string_view DirectoryOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : path.substr(0, slash);
}

bool AreHexDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

/// Whether `line` is one of a ref or of its log, in which two names of commits
/// come first.
bool IsOfRefOrLog(std::string_view line, bool is_only) {
  for (const size_t digits : {size_t{40}, size_t{64}}) {
    if (is_only && line.size() == digits && AreHexDigits(line)) return true;
    const bool is_log = line.size() > 2 * digits + 1 && line[digits] == ' ' &&
                        line[2 * digits + 1] == ' ' &&
                        AreHexDigits(line.substr(0, digits)) &&
                        AreHexDigits(line.substr(digits + 1, digits));
    if (is_log) return true;
  }
  return false;
}

/// Whether the file is a branch that is called config, or its log. git never
/// reads that as its configuration.
bool IsRefOrLog(std::string_view text, std::string_view path) {
  const std::string name = Lowered(path);
  const bool is_configuration =
      name.ends_with(".git/config") || name.ends_with(".git/config.worktree");
  if (is_configuration) return false;
  const std::vector<std::string_view> lines = LinesIn(text);
  return !lines.empty() &&
         std::ranges::all_of(lines, [&](std::string_view line) {
           return IsOfRefOrLog(line, lines.size() == 1);
         });
}

/// git writes it into the configuration of a submodule.
bool IsWorktreeInside(const GitSetting& setting, const ContentPlace& place) {
  return setting.section == "core" && setting.subsection.empty() &&
         setting.name == "worktree" &&
         InWorkspace(DirectoryOf(place.path), setting.value, place.workspace)
             .has_value();
}

/// Reads the file as git does: all to its end, but for line ends there.
std::vector<std::string> WhereGitFileLeads(std::string_view after,
                                           const ContentPlace& place) {
  constexpr std::string_view kKey = "gitdir: ";
  std::string_view target = after;
  if (target.starts_with(kKey)) target.remove_prefix(kKey.size());
  while (target.ends_with('\n') || target.ends_with('\r')) {
    target.remove_suffix(1);
  }
  const bool is_line = std::ranges::none_of(
      target, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  const auto inside =
      InWorkspace(DirectoryOf(place.path), target, place.workspace);
  if (is_line && inside && IsOwnRepository(*inside)) return {};
  std::vector<std::string> lines;
  for (const std::string_view line : LinesIn(after)) lines.emplace_back(line);
  return lines;
}

std::string TextOf(const GitSetting& setting) {
  if (setting.section.empty()) return setting.value;
  std::string text = setting.section;
  if (!setting.subsection.empty()) text += "." + setting.subsection;
  return text + "." + setting.name + " = " + setting.value;
}

}  // namespace

std::string_view NameOf(ContentKind kind) {
  return kContentKinds.at(static_cast<size_t>(kind));
}

std::optional<ContentKind> ContentKindNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kContentKinds, name);
  if (found == kContentKinds.end()) return std::nullopt;
  return static_cast<ContentKind>(found - kContentKinds.begin());
}

GitRedirects RedirectsOf(std::string_view text, ContentPlace place) {
  GitRedirects redirects;
  const auto add = [&](std::string_view directory, const GitSetting& setting,
                       std::vector<std::string>& to) {
    auto path = InWorkspace(directory, setting.value, place.workspace);
    if (path && !path->empty()) to.push_back(std::move(*path));
  };
  for (const GitSetting& setting : ReadGitSettings(text)) {
    if (setting.section == "core" && setting.name == "hookspath") {
      add("", setting, redirects.hooks);
    }
    const bool is_include =
        setting.section == "include" || setting.section == "includeif";
    if (is_include && setting.name == "path") {
      add(DirectoryOf(place.path), setting, redirects.settings);
    }
  }
  return redirects;
}

std::vector<std::string> LinesThatMatter(ContentKind kind,
                                         std::string_view before,
                                         std::string_view after,
                                         ContentPlace place) {
  switch (kind) {
    case ContentKind::kAny:
      return NewLines(LinesIn(before), LinesIn(after));
    case ContentKind::kGitConfig: {
      std::vector<std::string> lines;
      if (IsRefOrLog(after, place.path)) return lines;
      for (const GitSetting& setting : RiskySettings(before, after)) {
        if (!IsWorktreeInside(setting, place)) {
          lines.push_back(TextOf(setting));
        }
      }
      return lines;
    }
    case ContentKind::kGitBare: {
      // Also a place of files, in which git would run the hooks.
      std::vector<std::string> lines;
      for (const GitSetting& setting : RiskySettings(before, after)) {
        lines.push_back(TextOf(setting));
      }
      return lines;
    }
    case ContentKind::kGitFile:
      return WhereGitFileLeads(after, place);
    case ContentKind::kPythonPath:
      if (Lowered(place.path).ends_with(".py")) {
        return NewLines(LinesIn(before), LinesIn(after));
      }
      return NewLines(ImportLines(before), ImportLines(after));
  }
  return {};
}

}  // namespace txfs::policy
