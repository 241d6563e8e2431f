#include "fs/fuse/fuse_scans.h"

#include <algorithm>

namespace txfs {

// Nothing depends on the values but speed: they need no order among each other.

bool FuseScans::WantsAttributes(Ino directory, uint64_t cookie, uint64_t now) {
  if (cookie == 0) return true;
  if (now < wanted_until_.load(std::memory_order_relaxed)) return true;
  const auto is_it = [&](const std::atomic<uint64_t>& bare) {
    return bare.load(std::memory_order_relaxed) == Raw(directory);
  };
  if (std::ranges::none_of(bare_, is_it)) {
    const size_t at = next_.fetch_add(1, std::memory_order_relaxed);
    bare_[at % bare_.size()].store(Raw(directory), std::memory_order_relaxed);
  }
  return false;
}

void FuseScans::OnLookup(Ino directory, uint64_t now) {
  for (const auto& bare : bare_) {
    if (bare.load(std::memory_order_relaxed) != Raw(directory)) continue;
    wanted_until_.store(now + kRecent, std::memory_order_relaxed);
    return;
  }
}

}  // namespace txfs
