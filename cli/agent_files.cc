#include "cli/agent_files.h"

#include <ranges>
#include <string>
#include <vector>

#include "cli/json.h"
#include "cli/log_format.h"
#include "cli/summary_format.h"
#include "cli/text.h"
#include "policy/words.h"

namespace txfs::cli {
namespace {

/// What is told of denials ends about there: their paths may be long.
constexpr size_t kMaxDenialBytes = size_t{1} << 20;

/// A file that cannot be made says why, in its own format.
Document ErrorDocument(const Error& error) {
  Document document;
  document["error"] = EscapeControls(error.ToString());
  return document;
}

std::string PolicyText(LivePolicy& live) {
  const auto policy = live.Rules();
  if (!policy) {
    return "The rules cannot be told: " +
           EscapeControls(policy.error().ToString()) + "\n";
  }
  if (*policy == nullptr) return policy::InWords({}, {});
  return policy::InWords((*policy)->rules(), (*policy)->limits());
}

std::string StatusText(Workspace& workspace) {
  const auto denials = workspace.ReadDenials();
  if (!denials) return Dump(ErrorDocument(denials.error()), 2) + "\n";
  Document status;
  status["transaction"] = workspace.transaction_id();
  status["denied"] = DeniedDocument(denials->CountByRule());
  return Dump(status, 2) + "\n";
}

std::string LastDenialText(Workspace& workspace) {
  const auto denials = workspace.ReadDenials();
  if (!denials) return Dump(ErrorDocument(denials.error()), 2) + "\n";
  if (denials->entries.empty()) return "null\n";
  return Dump(LogDocument(denials->entries.back()), 2) + "\n";
}

std::string DenialsText(Workspace& workspace) {
  const auto denials = workspace.ReadDenials();
  if (!denials) return Dump(ErrorDocument(denials.error())) + "\n";
  std::vector<std::string> lines;
  size_t size = 0;
  for (const LogEntry& entry : denials->entries | std::views::reverse) {
    lines.push_back(Dump(LogDocument(entry)) + "\n");
    size += lines.back().size();
    if (size > kMaxDenialBytes) break;
  }
  std::string text;
  for (const std::string& line : lines | std::views::reverse) text += line;
  return text;
}

}  // namespace

std::vector<SyntheticFile> AgentFiles(Workspace& workspace,
                                      LivePolicy& policy) {
  return {{"policy.md", [&] { return PolicyText(policy); }},
          {"status.json", [&] { return StatusText(workspace); }},
          {"last_denial.json", [&] { return LastDenialText(workspace); }},
          {"denials.jsonl", [&] { return DenialsText(workspace); }}};
}

}  // namespace txfs::cli
