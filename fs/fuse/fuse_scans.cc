#include "fs/fuse/fuse_scans.h"

#include <algorithm>

namespace txfs {

// Nothing depends on the values but speed: they need no order among each other.

bool FuseScans::IsBare(Ino directory) const {
  return std::ranges::any_of(bare_, [&](const std::atomic<uint64_t>& bare) {
    return bare.load(std::memory_order_relaxed) == Raw(directory);
  });
}

void FuseScans::NoteBare(Ino directory) {
  if (IsBare(directory)) return;
  const size_t at = next_.fetch_add(1, std::memory_order_relaxed);
  bare_[at % bare_.size()].store(Raw(directory), std::memory_order_relaxed);
}

bool FuseScans::WantsAttributes(Ino directory, uint64_t cookie, uint64_t now) {
  if (IsScanned(now)) return true;
  const bool is_first = cookie == 0;
  if (is_first && now >= names_until_.load(std::memory_order_relaxed)) {
    return true;
  }
  NoteBare(directory);
  if (!is_first) names_until_.store(now + kRecent, std::memory_order_relaxed);
  return false;
}

void FuseScans::OnLookup(Ino directory, uint64_t now) {
  if (!IsBare(directory)) return;
  wanted_until_.store(now + kRecent, std::memory_order_relaxed);
  names_until_.store(0, std::memory_order_relaxed);
}

}  // namespace txfs
