#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/veto/approval_queue.h"

namespace txfs::cli {

/// A question that waits for a person, as commands see it.
struct PendingQuestion {
  struct Name {
    std::string effect, path, layer;
  };
  uint64_t id = 0;
  std::string rule, reason, suggest;
  std::string op, path, new_path, exe;
  uint32_t uid = 0;
  std::vector<Name> names;     ///< that the rule is about
  std::vector<uint64_t> pids;  ///< of who waits; 0: of another namespace
  Timestamp asked;
  int64_t left_ms = 0;  ///< until it is too late
};

/// What is asked, without who waits for it.
Json ToJson(const Question& question);
Json ToJson(const ApprovalQueue::Item& item);
PendingQuestion PendingFromJson(const Json& json);

/// A few lines, whatever is in names.
[[nodiscard]] std::string PendingText(const PendingQuestion& question);
/// As txfs(1) says of `pending --json`.
[[nodiscard]] Document PendingDocument(const PendingQuestion& question);

}  // namespace txfs::cli
