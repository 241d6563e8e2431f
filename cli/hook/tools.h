#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/hook/hook_call.h"
#include "cli/output/json.h"

namespace txfs::cli {

/// Fills in `tool`, `command`, `files` and `problem` of `call` from the tool's
/// name and arguments. The names are those of all hosts; of another tool,
/// nothing is filled in but its name. A directory in the arguments of a shell
/// tool changes that of the call.
void ReadTool(const std::string& tool, const Json& arguments, HookCall& call);

/// What a patch in the format of apply_patch does to files. Reads the lines
/// that name files, and not what is between them.
[[nodiscard]] std::vector<FileUse> FilesInPatch(std::string_view patch);

}  // namespace txfs::cli
