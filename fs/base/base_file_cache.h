#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "fs/base/base_directory.h"
#include "journal/change.h"
#include "journal/support/mutex.h"
#include "journal/support/types.h"

namespace txfs {

/// Which object of the base a path is to lead to; BaseOrigin has both.
struct BaseIdentity {
  uint64_t dev = 0;  ///< 0: the root's
  uint64_t ino = 0;
  bool operator==(const BaseIdentity&) const = default;

  [[nodiscard]] static BaseIdentity Of(const BaseOrigin& origin) {
    return {.dev = origin.dev, .ino = origin.ino};
  }
};

/// What the kernel was told of a base object, by which it decides who may read
/// it.
struct Told {
  BaseIdentity object;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t uid = 0;
  uint32_t gid = 0;

  [[nodiscard]] static Told Of(const BaseOrigin& origin) {
    return {BaseIdentity::Of(origin), origin.mode, origin.uid, origin.gid};
  }
  /// Whether everybody who was let in by what was told may read (and search)
  /// what `now` is of, too.
  [[nodiscard]] bool Covers(const struct stat& now) const;
};

/// Descriptors of base files lately read: without OPEN and RELEASE messages
/// nobody says when one is needed. Thread-safe.
class BaseFileCache {
 public:
  explicit BaseFileCache(const BaseDirectory& base) : base_(base) {}

  /// Whether another file that has the name by now is as good.
  enum class OnOther { kAccept, kFail };

  /// The base file `path` of inode `ino`, which was `origin`, opened for
  /// reading. ESTALE with kFail when it is gone or another one.
  Result<SharedFd> Get(Ino ino, const std::string& path,
                       const BaseIdentity& origin, OnOther on_other);
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
