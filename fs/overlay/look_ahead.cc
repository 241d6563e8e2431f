#include "fs/overlay/look_ahead.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace txfs {

void LookAhead::Put(Entries entries) {
  const MutexLock lock(mutex_);
  std::swap(entries_[Raw(entries.directory) % entries_.size()], entries);
}

LookAhead::Stats LookAhead::Take(Ino directory, uint64_t now,
                                 std::span<const std::string_view> names) {
  Entries taken;
  {
    const MutexLock lock(mutex_);
    Entries& entries = entries_[Raw(directory) % entries_.size()];
    if (entries.directory != directory) return {};
    taken = std::exchange(entries, {});
  }
  if (now > taken.time + kValid) return {};
  const auto end = std::ranges::mismatch(taken.names, names).in1;
  taken.stats.resize(static_cast<size_t>(end - taken.names.begin()),
                     Fail(ENOENT, "stat"));
  return std::move(taken.stats);
}

void LookAhead::Clear() {
  const MutexLock lock(mutex_);
  entries_ = {};
}

}  // namespace txfs
