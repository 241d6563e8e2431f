#include "cli/hook/host_formats.h"

namespace txfs::cli {
namespace {

HookCall ReadCursor(const Json& input) {
  HookCall call;
  call.event = GetBytes(input, "hook_event_name");
  call.session = GetBytes(input, "conversation_id");
  call.turn = GetBytes(input, "generation_id");
  call.directory = GetBytes(input, "cwd");
  const Json& roots = GetMember(input, "workspace_roots");
  if (call.directory.empty() && !roots.empty() && roots.begin()->is_string()) {
    call.directory = roots.begin()->get<std::string>();
  }
  const std::string command = GetBytes(input, "command");
  if (call.event == "beforeShellExecution") {
    call.tool = "shell";
    if (command.empty()) {
      call.problem = "the call has no command";
    } else {
      call.command = command;
    }
  }
  return call;
}

HookOutput CursorAnswer(const char* permission, const std::string& reason) {
  Document document;
  document["permission"] = permission;
  if (!reason.empty()) {
    document["user_message"] = ToUtf8(reason);
    document["agent_message"] = ToUtf8(reason);
  }
  return PrintJson(document);
}

/// With failClosed, silence is a refusal: so there is always an answer.
HookOutput WriteCursor(const HookCall&, const HookAnswer& answer) {
  switch (answer.decision) {
    case Decision::kAllow:
      return CursorAnswer("allow", "");
    case Decision::kSilent:
    case Decision::kAsk:
      return CursorAnswer("ask", answer.reason);
    case Decision::kDeny:
      break;
  }
  return CursorAnswer("deny", answer.reason);
}

HookOutput RefuseCursor(const std::string& why) {
  return CursorAnswer("deny", why);
}

}  // namespace

HookHost CursorHost() {
  return {.name = "cursor",
          .tools = {},
          .read = ReadCursor,
          .write = WriteCursor,
          .asks = true,
          .refuse = RefuseCursor,
          .variable = nullptr,
          .user_directory = ".cursor",
          .user_file = "hooks.json",
          .project_file = ".cursor/hooks.json",
          .events = {{"beforeShellExecution",
                      R"({"command":"txfs hook cursor","failClosed":true})"}},
          .has_version = true,
          .then =
              "Cursor reads the file again when it is saved; Settings, "
              "Hooks lists the hook. It is not called for edits of files: "
              "work in a mount"};
}

}  // namespace txfs::cli
