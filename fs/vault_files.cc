#include "fs/vault_files.h"

#include <sys/stat.h>

#include <ranges>
#include <utility>

namespace txfs {

SharedFd VaultFiles::Find(const Fingerprint& state) {
  const MutexLock lock(mutex_);
  Update();
  for (const auto& [id, index] : indexes_ | std::views::reverse) {
    const auto [first, last] = index.by_ino.equal_range(state.ino);
    for (auto at = first; at != last; ++at) {
      auto fd = vaults_.OpenFile(at->second);
      if (fd && IsInState((*fd)->get(), state)) return std::move(*fd);
    }
  }
  return nullptr;
}

void VaultFiles::Update() {
  std::map<std::string, Index> known = std::exchange(indexes_, {});
  const auto ids = vaults_.Ids();
  if (!ids) return;
  for (const std::string& id : *ids) {
    // Before it is listed, so that what changes meanwhile is seen next time.
    const VaultStamp stamp = vaults_.StampOf(id);
    Index& index = indexes_[id];
    if (auto old = known.find(id);
        old != known.end() && old->second.stamp == stamp) {
      index = std::move(old->second);
      continue;
    }
    index.stamp = stamp;
    vaults_.ForEachFile(id, [&](std::string path, uint64_t ino) {
      index.by_ino.emplace(ino, std::move(path));
    });
  }
}

/// A rename changed its ctime.
bool VaultFiles::IsInState(int fd, const Fingerprint& state) const {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return false;
  const uint64_t dev = st.st_dev == base_.device() ? 0 : st.st_dev;
  return dev == state.dev && st.st_ino == state.ino &&
         static_cast<uint64_t>(st.st_size) == state.size &&
         Timestamp::From(st.st_mtim) == state.mtime;
}

}  // namespace txfs
