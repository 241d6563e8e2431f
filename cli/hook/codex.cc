#include <array>

#include "cli/hook/host_formats.h"

namespace txfs::cli {
namespace {

constexpr std::string_view kCodexElement =
    R"({"matcher":"Bash|apply_patch","hooks":[
       {"type":"command","command":"txfs hook codex","timeout":30}]})";

constexpr std::array<HostTool, 2> kCodexTools{{
    {"Bash", ToolKind::kShell, "command"},
    {"apply_patch", ToolKind::kPatch, "command"},
}};

HookCall ReadCodex(const Json& input) {
  HookCall call = ReadCommonCall(kCodexTools, input);
  call.turn = GetBytes(input, "turn_id");
  return call;
}

/// Codex runs the call after every answer but a well-formed deny: "allow" and
/// "ask" count as errors of the hook.
HookOutput WriteCodex(const HookCall& call, const HookAnswer& answer) {
  if (call.event == "PermissionRequest") return AnswerPermissionRequest(answer);
  if (answer.decision != Decision::kDeny) return {};
  return PrintJson(PreToolUseDocument("deny", answer.reason));
}

}  // namespace

HookHost CodexHost() {
  return {.name = "codex",
          .tools = kCodexTools,
          .read = ReadCodex,
          .write = WriteCodex,
          .refuse = BlockByExit,
          .variable = "CODEX_HOME",
          .user_directory = ".codex",
          .user_file = "hooks.json",
          .project_file = ".codex/hooks.json",
          .events = {{"PreToolUse", kCodexElement},
                     {"PermissionRequest", kCodexElement},
                     {"PostToolUse", kCodexElement}},
          .end_event = "PostToolUse",
          .then =
              "trust the hooks in Codex, with the command /hooks: until then "
              "Codex skips them"};
}

}  // namespace txfs::cli
