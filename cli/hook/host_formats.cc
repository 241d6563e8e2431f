#include "cli/hook/host_formats.h"

#include "cli/hook/tools.h"

namespace txfs::cli {

HookOutput PrintJson(const Document& document) {
  return {.out = Dump(document) + "\n"};
}

HookOutput BlockByExit(const std::string& why) {
  return {.out = {}, .err = why + "\n", .code = 2};
}

HookCall ReadCommonCall(std::span<const HostTool> tools, const Json& input) {
  HookCall call;
  call.event = GetBytes(input, "hook_event_name");
  call.session = GetBytes(input, "session_id");
  call.call = GetBytes(input, "tool_use_id");
  call.agent = GetBytes(input, "agent_id");
  call.directory = GetBytes(input, "cwd");
  const std::string tool = GetBytes(input, "tool_name");
  if (tool.empty()) call.problem = "the call names no tool";
  ReadTool(tools, tool, GetMember(input, "tool_input"), call);
  return call;
}

Document PreToolUseDocument(const char* decision, const std::string& reason) {
  Document document;
  Document& output = document["hookSpecificOutput"];
  output["hookEventName"] = "PreToolUse";
  output["permissionDecision"] = decision;
  output["permissionDecisionReason"] = ToUtf8(reason);
  return document;
}

HookOutput AnswerPermissionRequest(const HookAnswer& answer) {
  Document document;
  Document& output = document["hookSpecificOutput"];
  output["hookEventName"] = "PermissionRequest";
  if (answer.decision == Decision::kAllow) {
    output["decision"]["behavior"] = "allow";
    return PrintJson(document);
  }
  if (answer.decision == Decision::kDeny) {
    output["decision"]["behavior"] = "deny";
    output["decision"]["message"] = ToUtf8(answer.reason);
    return PrintJson(document);
  }
  return {};
}

}  // namespace txfs::cli
