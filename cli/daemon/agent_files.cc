#include "cli/daemon/agent_files.h"

#include <ranges>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "cli/output/log_format.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
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
    return "The rules cannot be read: " +
           EscapeControls(policy.error().ToString()) + "\n";
  }
  if (*policy == nullptr) return policy::InWords({}, {});
  return policy::InWords((*policy)->rules(), (*policy)->limits(),
                         (*policy)->exec_rules().size());
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
  // Names that were refused may lie where not everybody may look.
  const auto of_denials = [&](const char* name,
                              std::string (*text)(Workspace&)) {
    return SyntheticFile{
        .name = name,
        .content = [&workspace, text] { return text(workspace); },
        .version = [&workspace] { return workspace.DenialsVersion(); },
        .is_private = true};
  };
  return {{.name = "policy.md",
           .content = [&] { return PolicyText(policy); },
           .version = [&] { return std::to_string(policy.Reloads()); }},
          of_denials("status.json", StatusText),
          of_denials("last_denial.json", LastDenialText),
          of_denials("denials.jsonl", DenialsText)};
}

}  // namespace txfs::cli
