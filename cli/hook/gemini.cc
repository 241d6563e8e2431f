#include <array>

#include "cli/hook/host_formats.h"

namespace txfs::cli {
namespace {

/// The timeout is in milliseconds.
constexpr std::string_view kGeminiElement =
    R"({"matcher":"^(run_shell_command|write_file|replace)$","hooks":[
       {"type":"command","name":"txfs","command":"txfs hook gemini",
        "timeout":30000}]})";

constexpr std::array<HostTool, 3> kGeminiTools{{
    {"run_shell_command", ToolKind::kShell, "command", "dir_path"},
    {"write_file", ToolKind::kFile, "file_path"},
    {"replace", ToolKind::kFile, "file_path"},
}};

HookCall ReadGemini(const Json& input) {
  return ReadCommonCall(kGeminiTools, input);
}

HookOutput DenyGemini(const std::string& reason) {
  Document document;
  document["decision"] = "deny";
  document["reason"] = ToUtf8(reason);
  return PrintJson(document);
}

/// Its documentation has no "ask", and versions that do not know it run the
/// call.
HookOutput WriteGemini(const HookCall&, const HookAnswer& answer) {
  if (answer.decision == Decision::kDeny) return DenyGemini(answer.reason);
  Document document = Document::object();
  if (answer.decision == Decision::kAllow) document["decision"] = "allow";
  return PrintJson(document);
}

}  // namespace

HookHost GeminiHost() {
  return {
      .name = "gemini",
      .tools = kGeminiTools,
      .read = ReadGemini,
      .write = WriteGemini,
      .refuse = DenyGemini,
      .variable = nullptr,
      .user_directory = ".gemini",
      .user_file = "settings.json",
      .project_file = ".gemini/settings.json",
      .events = {{"BeforeTool", kGeminiElement}, {"AfterTool", kGeminiElement}},
      .end_event = "AfterTool",
      .then =
          "sessions that begin from now on call the hook; in a project, "
          "Gemini CLI calls it only in a trusted folder"};
}

}  // namespace txfs::cli
