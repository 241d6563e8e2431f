#pragma once

#include <cstdint>
#include <string_view>

namespace txfs::policy {

enum class Verdict { kAllow, kDeny };

/// One name that a mutating operation would change.
struct Event {
  std::string_view op;    ///< as `txfs log` prints it
  std::string_view path;  ///< relative to the workspace root
  uint32_t uid = 0;
};

/// The rule that decided, its errno and its reason.
struct Decision {
  Verdict verdict = Verdict::kAllow;
  int error = 0;
  std::string_view rule;
  std::string_view reason;
};

/// Whether the operation may happen. Pure. The only rule so far is built in:
/// the name `.txfs` in the workspace root belongs to txfs, whatever the
/// operation.
[[nodiscard]] Decision Evaluate(const Event& event);

}  // namespace txfs::policy
