#pragma once

#include <list>
#include <optional>
#include <string>
#include <unordered_map>

#include "fs/base_directory.h"
#include "journal/base/mutex.h"
#include "journal/base/types.h"

namespace txfs {

/// Which object of the base a path is to lead to; BaseOrigin has both.
struct BaseIdentity {
  uint64_t dev = 0;  ///< 0: the root's
  uint64_t ino = 0;
  bool operator==(const BaseIdentity&) const = default;
};

/// Descriptors of base files lately read: without OPEN and RELEASE messages
/// nobody says when one is needed. Thread-safe.
class BaseFileCache {
 public:
  explicit BaseFileCache(const BaseDirectory& base) : base_(base) {}

  /// The base file `path` of inode `ino`, opened for reading. ESTALE when it is
  /// not `origin`, if one is given: it is gone, or another file has its name.
  Result<SharedFd> Get(Ino ino, const std::string& path,
                       const std::optional<BaseIdentity>& origin = {});
  /// For `ino`, opened elsewhere.
  void Put(Ino ino, const BaseIdentity& identity, SharedFd fd);
  /// What Get opened for `ino` lately, if it is `origin`; or nullptr.
  SharedFd Find(Ino ino, const BaseIdentity& origin);
  void Drop(Ino ino);
  void Clear();

 private:
  struct Entry {
    Ino ino;
    BaseIdentity identity;
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
