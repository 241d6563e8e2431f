#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fs/base/base_directory.h"
#include "fs/origin/preimages.h"
#include "fs/tree/tree.h"
#include "journal/support/mutex.h"

namespace txfs {

/// st_ino of the base files of which content may be wanted by a name that they
/// had: the transaction's, and those that are only held.
[[nodiscard]] std::set<uint64_t> FilesReadFrom(Tree& tree);

/// Files of the base that others gave another name or directory: a transaction
/// knows them by the one that they had. Thread-safe.
class MovedFiles {
 public:
  /// `base` outlives this.
  explicit MovedFiles(const BaseDirectory& base) : base_(base) {}

  /// `inos`: st_ino of those that may be asked for, so that one walk of the
  /// base serves all of them. The base has changed.
  void Expect(std::set<uint64_t> inos);
  /// The base has changed.
  void Forget();
  /// The file that was in `state` (IsSameFile), wherever the base has it on the
  /// filesystem mounted at `path`, where it was, opened for reading; or
  /// nullptr. May walk all of that filesystem, and no other: what is mounted
  /// elsewhere in the base may hang, or be this very mount.
  SharedFd Find(const Fingerprint& state, const std::string& path);
  /// The same for one that is expected; nullptr for others.
  SharedFd FindExpected(const Fingerprint& state, const std::string& path);

 private:
  using Names = std::multimap<uint64_t, std::string>;  ///< by st_ino

  SharedFd FindLocked(const Fingerprint& state, const std::string& path)
      REQUIRES(mutex_);

  const BaseDirectory& base_;
  Mutex mutex_;
  std::set<uint64_t> wanted_ GUARDED_BY(mutex_);
  /// By mountpoint: where those that are wanted were found.
  std::map<std::string, Names> names_ GUARDED_BY(mutex_);
};

}  // namespace txfs
