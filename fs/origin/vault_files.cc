#include "fs/origin/vault_files.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace txfs {

SharedFd VaultFiles::Find(const Fingerprint& state) {
  const MutexLock lock(mutex_);
  if (SharedFd known = FindKnown(state)) return known;
  if (!Update() && missing_.contains(state)) return nullptr;
  SharedFd found = FindKnown(state);
  if (!found) missing_.insert(state);
  return found;
}

SharedFd VaultFiles::FindKnown(const Fingerprint& state) const {
  for (const auto& [id, index] : indexes_ | std::views::reverse) {
    const auto [first, last] = index.by_ino.equal_range(state.ino);
    for (auto at = first; at != last; ++at) {
      auto fd = vaults_.OpenFile(at->second);
      if (fd && IsSameFile(base_, (*fd)->get(), state)) return std::move(*fd);
    }
  }
  return nullptr;
}

bool VaultFiles::Update() {
  const auto ids = vaults_.Ids();
  if (!ids) return false;
  // Another filesystem may be mounted over a part of a vault now.
  base_.DropCache();
  std::map<std::string, Index> known = std::exchange(indexes_, {});
  bool changed = known.size() != ids->size();
  for (const std::string& id : *ids) {
    VaultStamp stamp = vaults_.StampOf(id);
    Index& index = indexes_[id];
    const auto old = known.find(id);
    if (old != known.end() && !stamp.empty() && old->second.stamp == stamp) {
      index = std::move(old->second);
      continue;
    }
    changed = true;
    if (IsOld(stamp)) index.stamp = std::move(stamp);
    vaults_.ForEachFile(id, [&](std::string path, uint64_t ino) {
      index.by_ino.emplace(ino, std::move(path));
    });
  }
  if (changed) missing_.clear();
  return changed;
}

}  // namespace txfs
