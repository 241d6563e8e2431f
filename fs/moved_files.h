#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "fs/base_directory.h"
#include "fs/preimages.h"
#include "fs/tree.h"
#include "journal/base/mutex.h"

namespace txfs {

/// st_ino of the base files of which the transaction may still show content.
[[nodiscard]] std::set<uint64_t> FilesReadFrom(Tree& tree);

/// Files of the base that others gave another name or directory: a transaction
/// knows them by the one that they had. Thread-safe.
class MovedFiles {
 public:
  /// `base` outlives this.
  explicit MovedFiles(const BaseDirectory& base) : base_(base) {}

  /// The base has changed. `inos`: st_ino of those that may be asked for, so
  /// that one walk of the base serves all of them.
  void Expect(std::set<uint64_t> inos);
  /// The file that is in `state`, but for its ctime, wherever the base has it,
  /// opened for reading; or nullptr. May walk all of the base, for one that is
  /// not found only once after each Expect.
  SharedFd Find(const Fingerprint& state);

 private:
  void Search() REQUIRES(mutex_);

  const BaseDirectory& base_;
  Mutex mutex_;
  std::set<uint64_t> wanted_ GUARDED_BY(mutex_);
  bool is_searched_ GUARDED_BY(mutex_) = false;  ///< for all of `wanted_`
  std::multimap<uint64_t, std::string> names_
      GUARDED_BY(mutex_);  ///< by st_ino
};

}  // namespace txfs
