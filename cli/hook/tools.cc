#include "cli/hook/tools.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <utility>

#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

enum class ToolKind : uint8_t { kOther, kShell, kFile, kPatch };

struct KnownTool {
  std::string_view name;
  ToolKind kind;
};

/// Claude Code, Codex, Gemini CLI, Copilot CLI and OpenCode.
constexpr std::array<KnownTool, 15> kTools{{
    {"Bash", ToolKind::kShell},
    {"bash", ToolKind::kShell},
    {"run_shell_command", ToolKind::kShell},
    {"Edit", ToolKind::kFile},
    {"MultiEdit", ToolKind::kFile},
    {"Write", ToolKind::kFile},
    {"NotebookEdit", ToolKind::kFile},
    {"write_file", ToolKind::kFile},
    {"replace", ToolKind::kFile},
    {"edit", ToolKind::kFile},
    {"multiedit", ToolKind::kFile},
    {"write", ToolKind::kFile},
    {"create", ToolKind::kFile},
    {"apply_patch", ToolKind::kPatch},
    {"patch", ToolKind::kPatch},
}};

ToolKind KindOf(std::string_view name) {
  const auto* const tool = std::ranges::find(kTools, name, &KnownTool::name);
  return tool == kTools.end() ? ToolKind::kOther : tool->kind;
}

/// The first of the members that is a string and not empty.
std::optional<std::string> TextOf(const Json& arguments,
                                  std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    std::string text = GetBytes(arguments, key);
    if (!text.empty()) return text;
  }
  return std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// What follows `head` in `line`.
std::optional<std::string> After(std::string_view line, std::string_view head) {
  if (!line.starts_with(head)) return std::nullopt;
  return std::string(Trimmed(line.substr(head.size())));
}

}  // namespace

std::vector<FileUse> FilesInPatch(std::string_view patch) {
  std::vector<FileUse> files;
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    // Codex takes these lines with blanks around them, too.
    const std::string_view line = Trimmed(patch.substr(0, end));
    patch.remove_prefix(std::min(end + 1, patch.size()));
    if (const auto added = After(line, "*** Add File:")) {
      files.push_back({FileUse::What::kWrite, *added});
    } else if (const auto updated = After(line, "*** Update File:")) {
      files.push_back({FileUse::What::kWrite, *updated});
    } else if (const auto deleted = After(line, "*** Delete File:")) {
      files.push_back({FileUse::What::kRemove, *deleted});
    } else if (auto moved = After(line, "*** Move to:");
               moved && !files.empty()) {
      files.back().what = FileUse::What::kMove;
      files.back().new_path = std::move(*moved);
    }
  }
  return files;
}

void ReadTool(const std::string& tool, const Json& arguments, HookCall& call) {
  call.tool = tool;
  switch (KindOf(tool)) {
    case ToolKind::kOther:
      return;
    case ToolKind::kShell:
      call.command = TextOf(arguments, {"command"});
      if (!call.command) call.problem = "the tool " + tool + " has no command";
      if (const auto directory =
              TextOf(arguments, {"workdir", "dir_path", "directory"})) {
        call.directory = MakeAbsolute(call.directory, *directory);
      }
      return;
    case ToolKind::kFile:
      if (const auto path = TextOf(
              arguments, {"file_path", "notebook_path", "filePath", "path"})) {
        call.files.push_back({FileUse::What::kWrite, *path});
      } else {
        call.problem = "the tool " + tool + " names no file";
      }
      return;
    case ToolKind::kPatch:
      if (const auto patch =
              TextOf(arguments, {"command", "patchText", "patch", "input"})) {
        call.files = FilesInPatch(*patch);
      }
      if (call.files.empty()) call.problem = "the patch names no file";
      return;
  }
}

}  // namespace txfs::cli
