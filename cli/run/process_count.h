#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace txfs::cli {

/// What processes use, from /proc.
struct ProcessCount {
  std::vector<pid_t> processes;
  uint64_t threads = 0;  ///< of all but the first process
  uint64_t cpu_ms = 0;   ///< also of children that have ended
  /// Bytes without files; what processes share counts for each of them.
  uint64_t memory = 0;
};

/// Whether /proc shows the children of a process.
bool CanCountProcesses();

/// Counts `first` and all below it. One that ends, or whose parent ends, at
/// this moment may be left out.
ProcessCount CountProcesses(pid_t first);

/// As ProcessCount::memory, but what processes share counts once. Slow.
uint64_t MemoryOf(const std::vector<pid_t>& processes);

}  // namespace txfs::cli
