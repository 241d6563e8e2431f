#include <cerrno>

#include "policy/event.h"

namespace txfs::policy {
namespace {

constexpr std::string_view kReserved = ".txfs";

bool IsReserved(std::string_view path) {
  return path.starts_with(kReserved) &&
         (path.size() == kReserved.size() || path[kReserved.size()] == '/');
}

}  // namespace

Decision Evaluate(const Event& event) {
  if (!IsReserved(event.path)) return {};
  return {.verdict = Verdict::kDeny,
          .error = EPERM,
          .rule = "reserved-name",
          .reason = "the name .txfs in the workspace root belongs to txfs"};
}

}  // namespace txfs::policy
