#pragma once

#include <list>
#include <string>
#include <unordered_map>

#include "fs/base/base_directory.h"
#include "journal/change.h"
#include "journal/support/mutex.h"
#include "journal/support/types.h"

namespace txfs {

/// The identity of a base object. BaseOrigin has both fields.
struct BaseIdentity {
  uint64_t dev = 0;  ///< 0: that of the base root
  uint64_t ino = 0;
  bool operator==(const BaseIdentity&) const = default;

  [[nodiscard]] static BaseIdentity Of(const BaseOrigin& origin) {
    return {.dev = origin.dev, .ino = origin.ino};
  }
};

/// The attributes of a base object that the kernel has been told, and with
/// which it decides who may read the object.
struct Told {
  BaseIdentity object;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  Timestamp ctime;  ///< when the object had these attributes

  [[nodiscard]] static Told Of(const BaseOrigin& origin) {
    return {BaseIdentity::Of(origin), origin.mode, origin.uid, origin.gid,
            origin.ctime};
  }
  /// Whether every user who may read (and search) an object with the told
  /// attributes may also read the object of `now`.
  [[nodiscard]] bool Covers(const struct stat& now) const;
};

/// Descriptors of recently read base files. There are no OPEN and RELEASE
/// messages that would tell how long one is needed. Thread-safe.
class BaseFileCache {
 public:
  explicit BaseFileCache(const BaseDirectory& base) : base_(base) {}

  /// Whether Get accepts another file that has the name meanwhile.
  enum class OnOther { kAccept, kFail };

  /// Opens the base file `path` of inode `ino` for reading. ESTALE if it is not
  /// a regular file; with kFail, also if it is gone or is not `origin`.
  Result<SharedFd> Get(Ino ino, const std::string& path,
                       const BaseIdentity& origin, OnOther on_other);
  /// Adds a descriptor for `ino` that was opened elsewhere.
  void Put(Ino ino, const BaseIdentity& identity, SharedFd fd);
  /// The cached descriptor for `ino` if it is of `origin`; else null.
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
