#include "fs/origin/moved_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fs/base/base_mounts.h"
#include "fs/base/link_search.h"

namespace txfs {

std::vector<uint64_t> FilesReadFrom(Tree& tree) {
  std::vector<uint64_t> inos;
  tree.ForEach([&](const Inode& inode) {
    const Attr& attr = inode.attr();
    const bool reads = inode.record.base &&
                       (attr.base_limit != 0 || !attr.xattrs_owned) &&
                       (inode.upper || inode.IsOrphan());
    if (reads) inos.push_back(inode.record.base->ino);
  });
  std::ranges::sort(inos);
  const auto repeated = std::ranges::unique(inos);
  inos.erase(repeated.begin(), repeated.end());
  return inos;
}

void MovedFiles::Expect(std::vector<uint64_t> inos) {
  const MutexLock lock(mutex_);
  wanted_ = std::move(inos);
  names_.clear();
}

void MovedFiles::Forget() {
  const MutexLock lock(mutex_);
  names_.clear();
}

SharedFd MovedFiles::Find(const Fingerprint& state, const std::string& path) {
  const MutexLock lock(mutex_);
  const auto place = std::ranges::lower_bound(wanted_, state.ino);
  if (place == wanted_.end() || *place != state.ino) {
    wanted_.insert(place, state.ino);
    names_.clear();
  }
  return FindLocked(state, path);
}

SharedFd MovedFiles::FindExpected(const Fingerprint& state,
                                  const std::string& path) {
  const MutexLock lock(mutex_);
  return std::ranges::binary_search(wanted_, state.ino)
             ? FindLocked(state, path)
             : nullptr;
}

SharedFd MovedFiles::FindLocked(const Fingerprint& state,
                                const std::string& path) {
  const auto mounts = BaseMounts::Read(base_);
  if (!mounts) return nullptr;
  const std::string mount = mounts->Of(path);
  const auto [searched, fresh] = names_.try_emplace(mount);
  Names& names = searched->second;
  if (fresh) {
    const std::set<uint64_t> wanted(wanted_.begin(), wanted_.end());
    WalkNames(base_, *mounts, mount, wanted, {},
              [&](uint64_t ino, std::string found) {
                names.emplace(ino, std::move(found));
                return true;
              });
  }
  const auto [first, last] = names.equal_range(state.ino);
  for (auto at = first; at != last; ++at) {
    auto fd = base_.OpenFile(at->second);
    if (fd && IsSameFile(base_, (*fd)->get(), state)) return std::move(*fd);
  }
  return nullptr;
}

}  // namespace txfs
