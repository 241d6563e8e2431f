#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "fs/veto/run_budget.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

// How a daemon tells the supervisor of a run that the run exceeded a limit: by
// an eventfd(2) that both have, whose count holds one for each limit.

inline constexpr uint64_t kBytesExceeded = 1;
inline constexpr uint64_t kObjectsExceeded = uint64_t{1} << 32;

inline Result<std::shared_ptr<UniqueFd>> MakeLimitSignal() {
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) return Fail(errno, "eventfd");
  return std::make_shared<UniqueFd>(std::move(fd));
}

inline void RaiseLimitSignal(int signal, RunLimit limit) {
  const uint64_t unit =
      limit == RunLimit::kBytes ? kBytesExceeded : kObjectsExceeded;
  std::ignore = ::write(signal, &unit, sizeof unit);
}

/// A limit that was exceeded since the last call.
inline std::optional<RunLimit> TakeLimitSignal(int signal) {
  uint64_t value = 0;
  if (::read(signal, &value, sizeof value) != sizeof value) return std::nullopt;
  return value % kObjectsExceeded != 0 ? RunLimit::kBytes : RunLimit::kObjects;
}

}  // namespace txfs::cli
