#include "cli/hook/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/output/paths.h"
#include "cli/shell/apply_patch.h"

namespace txfs::cli {
namespace {

/// Arguments by which some host's tool names its command, its file, its patch
/// or its directory.
constexpr std::array kMeaningful = {"command",  "file_path", "notebook_path",
                                    "filePath", "path",      "patchText",
                                    "patch",    "input",     "workdir",
                                    "dir_path", "directory", "cwd"};

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

void ReadPatch(const std::string& patch, HookCall& call) {
  PatchReading reading = FilesInPatch(patch);
  call.files = std::move(reading.files);
  if (call.files.empty()) call.problem = "the patch names no file";
  if (reading.has_odd_blanks) {
    call.doubt = "the patch has unusual white space beside the name of a file";
  }
}

}  // namespace

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
