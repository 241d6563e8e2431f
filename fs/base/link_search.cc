#include "fs/base/link_search.h"

#include <vector>

namespace txfs {

void WalkNames(const BaseDirectory& base, const BaseMounts& mounts,
               const std::string& mount, const std::set<uint64_t>& inos,
               const std::set<std::string>& except,
               const std::function<bool(uint64_t, std::string)>& visit) {
  std::vector<std::string> directories{mount};
  while (!directories.empty()) {
    const std::string directory = std::move(directories.back());
    directories.pop_back();
    auto entries = base.List(directory);
    // What we may not read is none of ours.
    if (!entries) continue;
    for (const BaseEntry& entry : *entries) {
      std::string path = JoinPath(directory, entry.name);
      if (entry.type == FileType::kDirectory) {
        if (mounts.Of(path) == mount) directories.push_back(std::move(path));
        continue;
      }
      const bool is_one = inos.contains(entry.ino) && !except.contains(path) &&
                          base.Stat(path);  // nor what we may not reach
      if (is_one && !visit(entry.ino, std::move(path))) return;
    }
  }
}

std::map<uint64_t, std::string> FindOtherNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except) {
  std::map<uint64_t, std::string> found;
  WalkNames(base, mounts, mount, inos, except,
            [&](uint64_t ino, std::string path) {
              found.emplace(ino, std::move(path));
              return found.size() < inos.size();
            });
  return found;
}

}  // namespace txfs
