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

/// Files of the base that have several names there, of which a rule is about
/// one: whoever reaches such a file by another name has never looked it up. The
/// base is searched when it is first asked, and only where rules lead. Thread-
/// safe.
class BaseLinks {
 public:
  explicit BaseLinks(const BaseDirectory& base) : base_(base) {}

  /// Which directories are elsewhere; asked when it is not known.
  using Moves = std::function<std::vector<MovedDirectory>()>;

  /// Base paths that lead to the file, and of which rules are about what they
  /// are in the base, or where a moved directory takes them; none if it has no
  /// such name. Directories that may not be listed count as empty.
  Result<std::vector<std::string>> PathsOf(const policy::Policy& policy,
                                           uint64_t dev, uint64_t ino,
                                           const Moves& moves) EXCLUDES(mutex_);
  /// The base has changed.
  void Clear() EXCLUDES(mutex_);
  /// Directories have moved.
  void ForgetMoves() EXCLUDES(mutex_);

 private:
  using ByFile =
      std::map<std::pair<uint64_t, uint64_t>, std::vector<std::string>>;

  /// Below `pending`, directories of the base with the paths that rules see.
  Result<ByFile> Search(const policy::Policy& policy,
                        std::vector<MovedDirectory> pending) const;

  const BaseDirectory& base_;
  Mutex mutex_;
  uint64_t policy_ GUARDED_BY(mutex_) = 0;  ///< hash; 0: not searched
  ByFile paths_ GUARDED_BY(mutex_);
  std::optional<ByFile> moved_ GUARDED_BY(mutex_);  ///< below moved directories
};

}  // namespace txfs
