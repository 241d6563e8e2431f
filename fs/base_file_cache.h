#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "fs/base_directory.h"
#include "journal/base/mutex.h"
#include "journal/base/types.h"

namespace txfs {

/// Descriptors of base files lately read: without OPEN and RELEASE messages
/// nobody says when one is needed. Thread-safe.
class BaseFileCache {
 public:
  explicit BaseFileCache(const BaseDirectory& base) : base_(base) {}

  /// The base file `path` of inode `ino`, opened for reading.
  Result<SharedFd> Get(Ino ino, const std::string& path);
  void Drop(Ino ino);
  void Clear();

 private:
  struct Entry {
    Ino ino;
    SharedFd fd;
  };
  using Recent = std::list<Entry>;

  void EraseLocked(Ino ino) REQUIRES(mutex_);

  const BaseDirectory& base_;
  Mutex mutex_;
  Recent recent_ GUARDED_BY(mutex_);  ///< newest first
  std::unordered_map<Ino, Recent::iterator> by_ino_ GUARDED_BY(mutex_);
};

}  // namespace txfs
