#include "policy/content.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, 4> kContentKinds{
    "any", "git-config", "git-file", "python-path"};

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

/// `path` from the directory `directory` of the workspace, without "." and
/// ".."; none: outside.
std::optional<std::string> InWorkspace(std::string_view directory,
                                       std::string_view path,
                                       std::string_view workspace) {
  std::string whole;
  if (path.starts_with('/')) {
    const bool is_below = path.starts_with(workspace) &&
                          path.substr(workspace.size()).starts_with('/');
    if (!is_below) return std::nullopt;
    whole = path.substr(workspace.size());
  } else {
    whole = std::string(directory) + "/" + std::string(path);
  }
  std::vector<std::string_view> names;
  std::string_view rest = whole;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      names.push_back(name);
    } else if (names.empty()) {
      return std::nullopt;
    } else {
      names.pop_back();
    }
  }
  std::string normal;
  for (const std::string_view name : names) {
    normal += (normal.empty() ? "" : "/") + std::string(name);
  }
  return normal;
}

/// The rules hold links, settings and hooks in these directories, so that a
/// file that leads there leads to nothing that was not looked at. In branches
/// and logs they hold no hooks.
bool IsOwnRepository(const std::string& path) {
  const std::string whole = path + "/";
  const bool is_apart = whole.find("/refs/") != std::string::npos ||
                        whole.find("/logs/") != std::string::npos;
  return path == ".git" || (!is_apart && (path.starts_with(".git/modules/") ||
                                          path.starts_with(".git/worktrees/")));
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

std::vector<std::string> WhereGitFileLeads(std::string_view after,
                                           const ContentPlace& place) {
  constexpr std::string_view kKey = "gitdir:";
  std::string_view target = after;
  if (target.starts_with(kKey)) target.remove_prefix(kKey.size());
  const size_t first = target.find_first_not_of(" \t");
  target.remove_prefix(std::min(first, target.size()));
  while (target.ends_with('\n') || target.ends_with('\r')) {
    target.remove_suffix(1);
  }
  const auto inside =
      InWorkspace(DirectoryOf(place.path), target, place.workspace);
  if (inside && IsOwnRepository(*inside)) return {};
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
    case ContentKind::kGitFile:
      return WhereGitFileLeads(after, place);
    case ContentKind::kPythonPath:
      return NewLines(ImportLines(before), ImportLines(after));
  }
  return {};
}

}  // namespace txfs::policy
