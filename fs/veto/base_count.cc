#include "fs/veto/base_count.h"

#include <string>
#include <utility>

namespace txfs {

Result<std::vector<uint64_t>> CountBase(
    const BaseDirectory& base, std::span<const policy::Limit* const> limits) {
  std::vector<uint64_t> counts(limits.size());
  std::vector<std::string> pending{""};
  while (!pending.empty()) {
    const std::string directory = std::move(pending.back());
    pending.pop_back();
    auto entries = base.List(directory);
    if (!entries) {
      if (IsClosedOrGone(entries.error())) continue;
      return std::unexpected(std::move(entries).error());
    }
    for (const BaseEntry& entry : *entries) {
      std::string path = JoinPath(directory, entry.name);
      for (size_t i = 0; i < limits.size(); ++i) {
        if (limits[i]->Counts(path)) ++counts[i];
      }
      if (entry.type == FileType::kDirectory) {
        pending.push_back(std::move(path));
      }
    }
  }
  return counts;
}

}  // namespace txfs
