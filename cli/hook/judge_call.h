#pragma once

#include "cli/hook/hook_call.h"
#include "cli/run/call_site.h"

namespace txfs::cli {

/// The answer to `call`, whose directory is that of `site` (docs/agents.md,
/// "Answers").
[[nodiscard]] HookAnswer JudgeCall(const HookCall& call, CallSite& site);

}  // namespace txfs::cli
