#include "fs/veto/base_links.h"

#include <algorithm>
#include <iterator>

namespace txfs {

Result<std::vector<std::string>> BaseLinks::PathsOf(
    const policy::Policy& policy, uint64_t dev, uint64_t ino,
    const Moves& moves) {
  const MutexLock lock(mutex_);
  if (policy_ != policy.hash()) {
    moved_.reset();
    paths_ = TRY(Search(policy, {{.base_path = "", .path = ""}}));
    policy_ = policy.hash();
  }
  if (!moved_) moved_ = TRY(Search(policy, moves()));
  std::vector<std::string> paths;
  for (const ByFile* known : {&paths_, &*moved_}) {
    const auto found = known->find({dev, ino});
    if (found == known->end()) continue;
    std::ranges::copy(found->second, std::back_inserter(paths));
  }
  return paths;
}

void BaseLinks::Clear() {
  const MutexLock lock(mutex_);
  policy_ = 0;
  paths_.clear();
  moved_.reset();
}

void BaseLinks::ForgetMoves() {
  const MutexLock lock(mutex_);
  moved_.reset();
}

Result<BaseLinks::ByFile> BaseLinks::Search(
    const policy::Policy& policy, std::vector<MovedDirectory> pending) const {
  ByFile found;
  while (!pending.empty()) {
    const MovedDirectory directory = std::move(pending.back());
    pending.pop_back();
    constexpr policy::Mask kAny = policy::kEverything | policy::kReading;
    if (!policy.MayMatchBelow(kAny, directory.path)) continue;
    auto entries = base_.List(directory.base_path);
    if (!entries) {
      if (IsClosedOrGone(entries.error())) continue;
      return std::unexpected(std::move(entries).error());
    }
    for (const BaseEntry& entry : *entries) {
      MovedDirectory next{JoinPath(directory.base_path, entry.name),
                          JoinPath(directory.path, entry.name)};
      if (entry.type == FileType::kDirectory) {
        pending.push_back(std::move(next));
      } else if (policy.IsAbout(next.path)) {
        const auto st = base_.Stat(next.base_path);
        if (!st || st->st_nlink < 2) continue;
        found[{st->st_dev, st->st_ino}].push_back(std::move(next.base_path));
      }
    }
  }
  return found;
}

}  // namespace txfs
