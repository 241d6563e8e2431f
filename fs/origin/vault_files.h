#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/origin/preimages.h"
#include "fs/vault/vaults.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Files that commits took out of the base, as long as they are kept for undo:
/// another transaction may still show one, under a name or with attributes of
/// its own. Thread-safe.
class VaultFiles {
 public:
  /// `store`: the store's directory. Both outlive this.
  VaultFiles(const BaseDirectory& base, int store)
      : base_(base), vaults_(base, store) {}

  /// The file that was in `state` when the base had it (IsSameFile), opened for
  /// reading; nullptr when it is not kept. The first call after a commit reads
  /// the names in its vault, all of them.
  SharedFd Find(const Fingerprint& state);

 private:
  /// What is in one vault.
  struct Index {
    VaultStamp stamp;  ///< empty: it may have changed within a tick since
    std::unordered_multimap<uint64_t, std::string> by_ino;  ///< paths
  };

  SharedFd FindKnown(const Fingerprint& state) const REQUIRES(mutex_);
  /// Looks again at vaults that changed since; returns whether any did.
  bool Update() REQUIRES(mutex_);

  const BaseDirectory& base_;
  const Vaults vaults_;
  Mutex mutex_;
  std::map<std::string, Index> indexes_ GUARDED_BY(mutex_);  ///< by vault
  std::set<Fingerprint> missing_ GUARDED_BY(mutex_);         ///< of `indexes_`
};

}  // namespace txfs
