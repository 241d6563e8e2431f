#pragma once

#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "fs/posix/filesystem.h"
#include "journal/support/mutex.h"

namespace txfs {

/// A directory's entries at one moment, sorted by cookie.
struct DirectorySnapshot {
  uint64_t version = 0;  ///< Inode::Names::version at the time of the list
  std::vector<DirEntry> entries;
};

/// Sorts `entries` by a hash of their names and derives the cookies from it, so
/// that a cookie stays valid while other entries come and go.
void AssignCookies(std::vector<DirEntry>& entries, uint64_t seed);

/// Snapshots of directories being read. Thread-safe.
class DirectoryCache {
 public:
  /// The snapshot of `ino` made at `version`, or nullptr.
  std::shared_ptr<const DirectorySnapshot> Find(Ino ino, uint64_t version);
  void Put(Ino ino, std::shared_ptr<const DirectorySnapshot> snapshot);
  void Clear();

 private:
  struct Entry {
    Ino ino;
    std::shared_ptr<const DirectorySnapshot> snapshot;
  };
  Mutex mutex_;
  std::list<Entry> recent_ GUARDED_BY(mutex_);  ///< newest first, few
};

}  // namespace txfs
