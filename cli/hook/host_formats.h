#pragma once

#include <span>
#include <string>

#include "cli/hook/hosts.h"

namespace txfs::cli {

[[nodiscard]] HookHost ClaudeCodeHost();
[[nodiscard]] HookHost CodexHost();
[[nodiscard]] HookHost GeminiHost();
[[nodiscard]] HookHost CursorHost();
[[nodiscard]] HookHost CopilotHost();
[[nodiscard]] HookHost OpenCodeHost();

/// One line of JSON, and exit code 0.
[[nodiscard]] HookOutput PrintJson(const Document& document);
/// Exit code 2, with `why` on stderr.
[[nodiscard]] HookOutput BlockByExit(const std::string& why);

/// The members that Claude Code, Codex and Gemini CLI share.
[[nodiscard]] HookCall ReadCommonCall(std::span<const HostTool> tools,
                                      const Json& input);
/// Of Claude Code, and of Codex, which takes no other member.
[[nodiscard]] Document PreToolUseDocument(const char* decision,
                                          const std::string& reason);
/// The answer to PermissionRequest: nothing unless the call is allowed or
/// refused, since the user is being asked already.
[[nodiscard]] HookOutput AnswerPermissionRequest(const HookAnswer& answer);

}  // namespace txfs::cli
