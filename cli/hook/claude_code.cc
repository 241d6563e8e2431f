#include <array>

#include "cli/hook/host_formats.h"

namespace txfs::cli {
namespace {

/// A failure of the hook blocks the call.
constexpr std::string_view kClaudeBlocking =
    R"({"matcher":"Bash|Edit|MultiEdit|Write|NotebookEdit","hooks":[
       {"type":"command","command":"txfs","args":["hook","claude-code"],
        "timeout":30,"onFailure":"block"}]})";
constexpr std::string_view kClaudeElement =
    R"({"matcher":"Bash|Edit|MultiEdit|Write|NotebookEdit","hooks":[
       {"type":"command","command":"txfs","args":["hook","claude-code"],
        "timeout":30}]})";

constexpr std::array<HostTool, 5> kClaudeTools{{
    {"Bash", ToolKind::kShell, "command"},
    {"Edit", ToolKind::kFile, "file_path"},
    {"MultiEdit", ToolKind::kFile, "file_path"},
    {"Write", ToolKind::kFile, "file_path"},
    {"NotebookEdit", ToolKind::kFile, "notebook_path"},
}};

HookCall ReadClaudeCode(const Json& input) {
  HookCall call = ReadCommonCall(kClaudeTools, input);
  call.turn = GetBytes(input, "prompt_id");
  // For a shell, it obeys "ask" in every mode. For a file tool, it does not in
  // modes that accept edits, such as bypassPermissions (2.1.332).
  const std::string mode = GetBytes(input, "permission_mode");
  call.obeys_ask = call.command || mode == "default" || mode == "plan";
  return call;
}

HookOutput WriteClaudeCode(const HookCall& call, const HookAnswer& answer) {
  if (call.event == "PermissionRequest") return AnswerPermissionRequest(answer);
  switch (answer.decision) {
    case Decision::kSilent:
      return {};
    case Decision::kAllow:
      return PrintJson(PreToolUseDocument("allow", answer.reason));
    case Decision::kAsk:
      return PrintJson(PreToolUseDocument("ask", answer.reason));
    case Decision::kDeny:
      return PrintJson(PreToolUseDocument("deny", answer.reason));
  }
  return {};
}

}  // namespace

HookHost ClaudeCodeHost() {
  return {.name = "claude-code",
          .tools = kClaudeTools,
          .read = ReadClaudeCode,
          .write = WriteClaudeCode,
          .asks = true,
          // In JSON, the event would have to be named.
          .refuse = BlockByExit,
          .variable = "CLAUDE_CONFIG_DIR",
          .user_directory = ".claude",
          .user_file = "settings.json",
          .project_file = ".claude/settings.json",
          .local_file = ".claude/settings.local.json",
          .events = {{"PreToolUse", kClaudeBlocking},
                     {"PermissionRequest", kClaudeElement},
                     {"PostToolUse", kClaudeElement}},
          .lists_names = true,
          .end_event = "PostToolUse",
          .then =
              "sessions that begin from now on call the hook; in a project, "
              "Claude Code first asks whether you trust the directory"};
}

}  // namespace txfs::cli
