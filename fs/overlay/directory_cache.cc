#include "fs/overlay/directory_cache.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "journal/support/checksum.h"

namespace txfs {
namespace {

constexpr size_t kMaxSnapshots = 16;
constexpr uint64_t kFirstCookie = 3;  // after "." and ".."

}  // namespace

void AssignCookies(std::vector<DirEntry>& entries, uint64_t seed) {
  // Entries are large: what is sorted is their cookies.
  std::vector<std::pair<uint64_t, size_t>> order;
  order.reserve(entries.size());
  for (const DirEntry& entry : entries) {
    order.emplace_back(
        std::max(Checksum(AsBytes(entry.name), seed) >> 1, kFirstCookie),
        order.size());
  }
  std::ranges::sort(order, [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first < b.first;
    return entries[a.second].name < entries[b.second].name;
  });
  std::vector<DirEntry> sorted;
  sorted.reserve(entries.size());
  uint64_t last = 0;
  for (const auto& [cookie, at] : order) {
    DirEntry& entry = sorted.emplace_back(std::move(entries[at]));
    last = entry.cookie = std::max(cookie, last + 1);
  }
  entries = std::move(sorted);
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
