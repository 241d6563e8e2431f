#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace txfs {

/// How many requests of each kind the kernel has sent. Thread-safe.
class RequestCounts {
 public:
  void Add(uint32_t opcode) {
    const size_t at = opcode < counts_.size() ? opcode : 0;
    counts_[at].fetch_add(1, std::memory_order_relaxed);
  }
  /// By the names of linux/fuse.h without their prefix; "OTHER": kinds that it
  /// does not have. Those that never came are left out.
  [[nodiscard]] std::map<std::string, uint64_t> Named() const;

 private:
  static constexpr size_t kKinds = 64;
  std::array<std::atomic<uint64_t>, kKinds> counts_{};
};

}  // namespace txfs
