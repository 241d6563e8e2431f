#include "fs/link_search.h"

#include <vector>

namespace txfs {

Result<std::map<uint64_t, std::string>> FindOtherNames(
    const BaseDirectory& base, const BaseMounts& mounts,
    const std::string& mount, const std::set<uint64_t>& inos,
    const std::set<std::string>& except) {
  std::map<uint64_t, std::string> found;
  std::vector<std::string> directories{mount};
  while (!directories.empty() && found.size() < inos.size()) {
    const std::string directory = std::move(directories.back());
    directories.pop_back();
    auto entries = base.List(directory);
    // What we may not read is none of ours.
    if (!entries) continue;
    for (const BaseEntry& entry : *entries) {
      std::string path = JoinPath(directory, entry.name);
      if (entry.type == FileType::kDirectory) {
        if (mounts.Of(path) == mount) directories.push_back(std::move(path));
      } else if (inos.contains(entry.ino) && !except.contains(path) &&
                 base.Stat(path)) {  // nor what we may not reach
        found.emplace(entry.ino, std::move(path));
      }
    }
  }
  return found;
}

}  // namespace txfs
