#include <array>

#include "cli/hook/host_formats.h"
#include "cli/hook/tools.h"

namespace txfs::cli {
namespace {

constexpr std::string_view kCopilotElement =
    R"({"type":"command","bash":"txfs hook copilot","timeoutSec":30})";
constexpr const char* kAfterTool = "postToolUse";

constexpr std::array<HostTool, 4> kCopilotTools{{
    {"bash", ToolKind::kShell, "command"},
    {"create", ToolKind::kFile, "path"},
    {"edit", ToolKind::kFile, "path"},
    {"apply_patch", ToolKind::kPatch, "input"},
}};

HookCall ReadCopilot(const Json& input) {
  HookCall call;
  // The input does not name its event. Only after a call there is a result.
  const bool is_end = input.is_object() && input.contains("toolResult");
  call.event = is_end ? kAfterTool : "preToolUse";
  call.session = GetBytes(input, "sessionId");
  call.directory = GetBytes(input, "cwd");
  const Json& given = GetMember(input, "toolArgs");
  const std::string text = GetBytes(input, "toolArgs");
  const std::string tool = GetBytes(input, "toolName");
  if (tool.empty()) call.problem = "the call names no tool";
  // A string with JSON; the cloud agent's SDK has the object itself.
  const Json parsed = text.empty() ? given : ParseBounded(text);
  ReadTool(kCopilotTools, tool, parsed, call);
  return call;
}

HookOutput CopilotAnswer(const char* decision, const std::string& reason) {
  Document document;
  document["permissionDecision"] = decision;
  if (!reason.empty()) document["permissionDecisionReason"] = ToUtf8(reason);
  return PrintJson(document);
}

/// Versions differ in whether they obey "ask": those that do not run the call.
HookOutput WriteCopilot(const HookCall&, const HookAnswer& answer) {
  if (answer.decision == Decision::kDeny) {
    return CopilotAnswer("deny", answer.reason);
  }
  if (answer.decision == Decision::kSilent) return {};
  return CopilotAnswer("allow", answer.reason);
}

HookOutput RefuseCopilot(const std::string& why) {
  return CopilotAnswer("deny", why);
}

}  // namespace

HookHost CopilotHost() {
  return {.name = "copilot",
          .tools = kCopilotTools,
          .read = ReadCopilot,
          .write = WriteCopilot,
          .refuse = RefuseCopilot,
          .variable = "COPILOT_HOME",
          .user_directory = ".copilot",
          .user_file = "hooks/txfs.json",
          .project_file = ".github/hooks/txfs.json",
          .events = {{"preToolUse", kCopilotElement},
                     {kAfterTool, kCopilotElement}},
          .end_event = kAfterTool,
          .has_version = true,
          .then =
              "sessions that begin from now on call the hook; in a "
              "repository, Copilot's cloud agent calls it too, and needs "
              "txfs there"};
}

}  // namespace txfs::cli
