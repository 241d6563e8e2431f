#include "fs/overlay/directory_cache.h"

#include <algorithm>

#include "journal/support/checksum.h"

namespace txfs {
namespace {

constexpr size_t kMaxSnapshots = 16;
constexpr uint64_t kFirstCookie = 3;  // after "." and ".."

}  // namespace

void AssignCookies(std::vector<DirEntry>& entries, uint64_t seed) {
  for (DirEntry& entry : entries) {
    entry.cookie =
        std::max(Checksum(AsBytes(entry.name), seed) >> 1, kFirstCookie);
  }
  std::ranges::sort(entries, [](const DirEntry& a, const DirEntry& b) {
    return a.cookie != b.cookie ? a.cookie < b.cookie : a.name < b.name;
  });
  for (size_t i = 1; i < entries.size(); ++i) {
    entries[i].cookie = std::max(entries[i].cookie, entries[i - 1].cookie + 1);
  }
}

std::shared_ptr<const DirectorySnapshot> DirectoryCache::Find(
    Ino ino, uint64_t version) {
  const MutexLock lock(mutex_);
  const auto found = std::ranges::find(recent_, ino, &Entry::ino);
  if (found == recent_.end() || found->snapshot->version != version) {
    return nullptr;
  }
  recent_.splice(recent_.begin(), recent_, found);
  return found->snapshot;
}

void DirectoryCache::Put(Ino ino,
                         std::shared_ptr<const DirectorySnapshot> snapshot) {
  const MutexLock lock(mutex_);
  std::erase_if(recent_, [&](const Entry& entry) { return entry.ino == ino; });
  recent_.push_front({ino, std::move(snapshot)});
  if (recent_.size() > kMaxSnapshots) recent_.pop_back();
}

void DirectoryCache::Clear() {
  const MutexLock lock(mutex_);
  recent_.clear();
}

}  // namespace txfs
