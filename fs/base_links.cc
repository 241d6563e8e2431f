#include "fs/base_links.h"

namespace txfs {

Result<std::vector<std::string>> BaseLinks::PathsOf(
    const policy::Policy& policy, uint64_t dev, uint64_t ino) {
  const MutexLock lock(mutex_);
  if (policy_ != policy.hash()) {
    paths_ = TRY(Search(policy));
    policy_ = policy.hash();
  }
  const auto found = paths_.find({dev, ino});
  return found == paths_.end() ? std::vector<std::string>() : found->second;
}

void BaseLinks::Clear() {
  const MutexLock lock(mutex_);
  policy_ = 0;
  paths_.clear();
}

Result<BaseLinks::ByFile> BaseLinks::Search(
    const policy::Policy& policy) const {
  ByFile found;
  std::vector<std::string> pending{""};
  while (!pending.empty()) {
    const std::string directory = std::move(pending.back());
    pending.pop_back();
    if (!policy.MayMatchBelow(policy::kEverything, directory)) continue;
    auto entries = base_.List(directory);
    if (!entries) {
      if (IsClosedOrGone(entries.error())) continue;
      return std::unexpected(std::move(entries).error());
    }
    for (const BaseEntry& entry : *entries) {
      std::string path = JoinPath(directory, entry.name);
      if (entry.type == FileType::kDirectory) {
        pending.push_back(std::move(path));
      } else if (policy.IsAbout(path)) {
        const auto st = base_.Stat(path);
        if (!st || st->st_nlink < 2) continue;
        found[{st->st_dev, st->st_ino}].push_back(std::move(path));
      }
    }
  }
  return found;
}

}  // namespace txfs
