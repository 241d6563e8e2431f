#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/origin/preimages.h"
#include "fs/tree/tree.h"
#include "journal/support/mutex.h"

namespace txfs {

/// st_ino of the base files that upper inodes and orphans read content or
/// extended attributes from, sorted.
[[nodiscard]] std::vector<uint64_t> FilesReadFrom(Tree& tree);

/// Finds base files that other programs renamed: the transaction knows them by
/// their recorded paths. Thread-safe.
class MovedFiles {
 public:
  /// `base` outlives this.
  explicit MovedFiles(const BaseDirectory& base) : base_(base) {}

  /// Starts over after a change of the base. `inos`: FilesReadFrom, so
  /// that one walk of the base finds all of them.
  void Expect(std::vector<uint64_t> inos);
  /// Starts over after a change of the base, with the same expected files.
  void Forget();
  /// Opens the file that was in `state` (IsSameFile) for reading, wherever it
  /// is on its filesystem; nullptr: not found. `path`: its recorded path. May
  /// walk the filesystem mounted there, but no other: another one may hang, or
  /// be this mount.
  SharedFd Find(const Fingerprint& state, const std::string& path);
  /// Find for an expected file; nullptr for others.
  SharedFd FindExpected(const Fingerprint& state, const std::string& path);

 private:
  using Names = std::multimap<uint64_t, std::string>;  ///< by st_ino

  SharedFd FindLocked(const Fingerprint& state, const std::string& path)
      REQUIRES(mutex_);

  const BaseDirectory& base_;
  Mutex mutex_;
  /// Sorted: there may be as many as changed files, and few searches.
  std::vector<uint64_t> wanted_ GUARDED_BY(mutex_);
  /// Paths of the expected files that were found, by mountpoint.
  std::map<std::string, Names> names_ GUARDED_BY(mutex_);
};

}  // namespace txfs
