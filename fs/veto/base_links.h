#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/tree/tree.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs {

/// Finds hard links of base files that rules match. An operation through one
/// name of such a file affects its other names, which the kernel may never have
/// looked up. The first query searches the base, and only where rules may
/// match. Thread-safe.
class BaseLinks {
 public:
  explicit BaseLinks(const BaseDirectory& base) : base_(base) {}

  /// Returns the moved directories; called when they are not cached.
  using Moves = std::function<std::vector<MovedDirectory>()>;

  /// Base paths of the file that rules match, either as they are or where a
  /// moved directory shows them. Unreadable directories count as empty.
  Result<std::vector<std::string>> PathsOf(const policy::Policy& policy,
                                           uint64_t dev, uint64_t ino,
                                           const Moves& moves) EXCLUDES(mutex_);
  /// Drops all paths after a change of the base.
  void Clear() EXCLUDES(mutex_);
  /// Drops the paths in moved directories.
  void ForgetMoves() EXCLUDES(mutex_);

 private:
  using ByFile =
      std::map<std::pair<uint64_t, uint64_t>, std::vector<std::string>>;

  /// Searches below `pending`: base directories and their overlay paths.
  Result<ByFile> Search(const policy::Policy& policy,
                        std::vector<MovedDirectory> pending) const;

  const BaseDirectory& base_;
  Mutex mutex_;
  uint64_t policy_ GUARDED_BY(mutex_) = 0;  ///< policy hash; 0: not searched
  ByFile paths_ GUARDED_BY(mutex_);
  std::optional<ByFile> moved_ GUARDED_BY(mutex_);  ///< in moved directories
};

}  // namespace txfs
