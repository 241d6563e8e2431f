#include "cli/hook/tools.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

/// Arguments by which some host's tool names its command, its file, its patch
/// or its directory.
constexpr std::array kMeaningful = {"command",  "file_path", "notebook_path",
                                    "filePath", "path",      "patchText",
                                    "patch",    "input",     "workdir",
                                    "dir_path", "directory", "cwd"};

/// White space of Unicode, and what JavaScript takes for it.
constexpr std::array<std::string_view, 26> kBlanks{
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u0085",
    "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
    "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A", "\u2028",
    "\u2029", "\u202F", "\u205F", "\u3000", "\uFEFF"};
constexpr std::array<std::string_view, 3> kPlainBlanks{" ", "\t", "\r"};

/// The first argument that is a string but not one of `tool`, though another
/// tool would take it for what this one does; "": none.
std::string OddArgument(const HostTool& tool, const Json& arguments) {
  const auto is_of_tool = [&](std::string_view key) {
    return key == tool.key ||
           (tool.directory_key != nullptr && key == tool.directory_key);
  };
  for (const char* key : kMeaningful) {
    if (!is_of_tool(key) && !GetBytes(arguments, key).empty()) return key;
  }
  return "";
}

std::string_view Trimmed(std::string_view text,
                         std::span<const std::string_view> blanks) {
  bool again = true;
  while (again) {
    again = false;
    for (const std::string_view blank : blanks) {
      const bool begins = text.starts_with(blank);
      if (begins) text.remove_prefix(blank.size());
      const bool ends = text.ends_with(blank);
      if (ends) text.remove_suffix(blank.size());
      again = again || begins || ends;
    }
  }
  return text;
}

/// What follows `head` in `line`.
std::optional<std::string> After(std::string_view line, std::string_view head) {
  if (!line.starts_with(head)) return std::nullopt;
  return std::string(Trimmed(line.substr(head.size()), kBlanks));
}

/// Whether `line`, which has no blanks around it, names a file.
bool ReadPatchLine(std::string_view line, std::vector<FileUse>& files) {
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
  } else {
    return false;
  }
  return true;
}

void ReadPatch(const std::string& patch, HookCall& call) {
  PatchReading reading = FilesInPatch(patch);
  call.files = std::move(reading.files);
  if (call.files.empty()) call.problem = "the patch names no file";
  if (reading.has_odd_blanks) {
    call.doubt = "the patch has unusual white space beside the name of a file";
  }
}

}  // namespace

PatchReading FilesInPatch(std::string_view patch) {
  PatchReading reading;
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    // Codex takes these lines with blanks around them, too.
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(std::min(end + 1, patch.size()));
    const std::string_view trimmed = Trimmed(line, kBlanks);
    if (!ReadPatchLine(trimmed, reading.files)) continue;
    const bool is_odd = Trimmed(line, kPlainBlanks) != trimmed;
    reading.has_odd_blanks = reading.has_odd_blanks || is_odd;
  }
  return reading;
}

void ReadTool(std::span<const HostTool> tools, const std::string& tool,
              const Json& arguments, HookCall& call) {
  call.tool = tool;
  const auto known = std::ranges::find(tools, tool, &HostTool::name);
  if (known == tools.end()) return;
  const std::string text = GetBytes(arguments, known->key);
  if (const std::string odd = OddArgument(*known, arguments); !odd.empty()) {
    call.doubt = "the tool " + tool + " has an argument \"" + odd +
                 "\", which txfs does not know of it";
  }
  switch (known->kind) {
    case ToolKind::kShell:
      if (text.empty()) {
        call.problem = "the tool " + tool + " has no command";
      } else {
        call.command = text;
      }
      if (known->directory_key != nullptr) {
        const std::string directory = GetBytes(arguments, known->directory_key);
        if (!directory.empty()) {
          call.directory = MakeAbsolute(call.directory, directory);
        }
      }
      return;
    case ToolKind::kFile:
      if (text.empty()) {
        call.problem = "the tool " + tool + " names no file";
      } else {
        call.files.push_back({FileUse::What::kWrite, text});
      }
      return;
    case ToolKind::kPatch:
      return ReadPatch(text, call);
  }
}

}  // namespace txfs::cli
