#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/hook/hook_call.h"
#include "cli/output/json.h"

namespace txfs::cli {

enum class ToolKind : uint8_t { kShell, kFile, kPatch };

/// A tool of a host whose calls are judged.
struct HostTool {
  std::string_view name;
  ToolKind kind;
  const char* key;  ///< of the command, the path or the patch
  const char* directory_key = nullptr;  ///< in which a shell works; or null
};

/// Fills in `tool`, `command`, `files`, `problem` and `doubt` of `call` from
/// the name and the arguments of a tool of a host that has `tools`. Of another
/// tool, nothing is filled in but its name. A directory in the arguments of a
/// shell tool changes that of the call. An argument that another tool would
/// take for its command, file or directory is a doubt.
void ReadTool(std::span<const HostTool> tools, const std::string& tool,
              const Json& arguments, HookCall& call);

}  // namespace txfs::cli
