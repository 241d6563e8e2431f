#include <array>

#include "cli/hook/host_formats.h"
#include "cli/hook/tools.h"

namespace txfs::cli {
namespace {

constexpr std::array<HostTool, 6> kOpenCodeTools{{
    {"bash", ToolKind::kShell, "command", "workdir"},
    {"edit", ToolKind::kFile, "filePath"},
    {"multiedit", ToolKind::kFile, "filePath"},
    {"write", ToolKind::kFile, "filePath"},
    {"patch", ToolKind::kPatch, "patchText"},
    {"apply_patch", ToolKind::kPatch, "patchText"},
}};

/// The input is that of the plugin below.
HookCall ReadOpenCode(const Json& input) {
  HookCall call;
  call.event = GetBytes(input, "event");
  call.session = GetBytes(input, "sessionID");
  call.call = GetBytes(input, "callID");
  call.directory = GetBytes(input, "cwd");
  const std::string tool = GetBytes(input, "tool");
  if (tool.empty()) call.problem = "the call names no tool";
  ReadTool(kOpenCodeTools, tool, GetMember(input, "args"), call);
  return call;
}

HookOutput OpenCodeAnswer(const char* decision, const std::string& reason) {
  Document document;
  document["decision"] = decision;
  if (!reason.empty()) document["reason"] = ToUtf8(reason);
  return PrintJson(document);
}

/// A plugin can refuse a call, and not ask. It takes silence for a failure.
HookOutput WriteOpenCode(const HookCall&, const HookAnswer& answer) {
  if (answer.decision == Decision::kDeny) {
    return OpenCodeAnswer("deny", answer.reason);
  }
  return OpenCodeAnswer("allow", "");
}

HookOutput RefuseOpenCode(const std::string& why) {
  return OpenCodeAnswer("deny", why);
}

constexpr std::string_view kOpenCodePlugin =
    R"js(// Made by `txfs hook install opencode`; `txfs hook uninstall opencode` removes it.
import { spawnSync } from "node:child_process"

const judged = new Set(["bash", "edit", "multiedit", "write", "patch", "apply_patch"])

export const Txfs = async ({ directory }) => {
  const hook = (event, { tool, sessionID, callID }, args) =>
    spawnSync("txfs", ["hook", "opencode"], {
      input: JSON.stringify({ event, tool, sessionID, callID, args, cwd: directory }),
      encoding: "utf8", cwd: directory, timeout: 30000,
    })
  return {
    "tool.execute.before": async (input, output) => {
      if (!judged.has(input.tool)) return
      let answer = {}
      try {
        answer = JSON.parse(hook("tool.execute.before", input, output.args).stdout) ?? {}
      } catch {}
      if (answer.decision === "allow") return
      throw new Error(answer.reason ?? "txfs hook opencode gives no answer; run txfs doctor")
    },
    "tool.execute.after": async (input) => {
      if (judged.has(input.tool)) hook("tool.execute.after", input, input.args)
    },
  }
}
)js";

}  // namespace

HookHost OpenCodeHost() {
  return {.name = "opencode",
          .tools = kOpenCodeTools,
          .read = ReadOpenCode,
          .write = WriteOpenCode,
          .refuse = RefuseOpenCode,
          .variable = "XDG_CONFIG_HOME",
          .user_directory = ".config",
          .user_file = "opencode/plugins/txfs.js",
          .project_file = ".opencode/plugins/txfs.js",
          .events = {},
          .end_event = "tool.execute.after",
          .program = kOpenCodePlugin,
          .then = "sessions that begin from now on load the plugin"};
}

}  // namespace txfs::cli
