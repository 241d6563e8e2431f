#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/veto/approval_queue.h"

namespace txfs::cli {

/// A question that waits for a user, for commands.
struct PendingQuestion {
  struct Name {
    std::string effect, path, layer;
  };
  uint64_t id = 0;
  std::string rule, reason, suggest;
  std::string op, path, new_path, exe;
  uint32_t uid = 0;
  std::vector<Name> names;     ///< matched by the rule
  std::vector<uint64_t> pids;  ///< waiting processes; 0: other pid namespace
  Timestamp asked;
  int64_t left_ms = 0;  ///< until it is denied
};

/// The question, without the waiting processes.
Json ToJson(const Question& question);
Json ToJson(const ApprovalQueue::Item& item);
PendingQuestion PendingFromJson(const Json& json);

/// A few lines, whatever bytes names have.
[[nodiscard]] std::string PendingText(const PendingQuestion& question);
/// The form of `pending --json` (txfs(1)).
[[nodiscard]] Document PendingDocument(const PendingQuestion& question);

}  // namespace txfs::cli
