#include "fs/moved_files.h"

#include <utility>

#include "fs/base_mounts.h"
#include "fs/link_search.h"

namespace txfs {

std::set<uint64_t> FilesReadFrom(Tree& tree) {
  std::set<uint64_t> inos;
  tree.ForEachUpper([&](const Inode& inode) {
    const bool reads = inode.record.base && inode.attr().base_limit != 0;
    if (reads) inos.insert(inode.record.base->ino);
  });
  return inos;
}

void MovedFiles::Expect(std::set<uint64_t> inos) {
  const MutexLock lock(mutex_);
  wanted_ = std::move(inos);
  is_searched_ = false;
  names_.clear();
}

SharedFd MovedFiles::Find(const Fingerprint& state) {
  const MutexLock lock(mutex_);
  if (wanted_.insert(state.ino).second) is_searched_ = false;
  if (!is_searched_) Search();
  const auto [first, last] = names_.equal_range(state.ino);
  for (auto at = first; at != last; ++at) {
    auto fd = base_.OpenFile(at->second);
    if (fd && IsInState(base_, (*fd)->get(), state)) return std::move(*fd);
  }
  return nullptr;
}

void MovedFiles::Search() {
  is_searched_ = true;
  names_.clear();
  const auto mounts = BaseMounts::Read(base_);
  if (!mounts) return;
  for (const std::string& mount : mounts->All()) {
    WalkNames(base_, *mounts, mount, wanted_, {},
              [&](uint64_t ino, std::string path) {
                names_.emplace(ino, std::move(path));
                return true;
              });
  }
}

}  // namespace txfs
