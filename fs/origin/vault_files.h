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

/// Files that commits moved out of the base, while the vaults keep them for
/// undo. Another transaction may still show such a file. Thread-safe.
class VaultFiles {
 public:
  /// `store`: the store's directory. Both outlive this.
  VaultFiles(const BaseDirectory& base, int store)
      : base_(base), vaults_(base, store) {}

  /// Opens the file that was in `state` in the base (IsSameFile) for reading;
  /// nullptr: not kept. The first call after a commit reads all names in its
  /// vault.
  SharedFd Find(const Fingerprint& state);

 private:
  /// The files in one vault.
  struct Index {
    VaultStamp stamp;  ///< empty: the vault may have changed within a tick
    std::unordered_multimap<uint64_t, std::string> by_ino;  ///< paths
  };

  SharedFd FindKnown(const Fingerprint& state) const REQUIRES(mutex_);
  /// Reads changed vaults again; returns whether there are any.
  bool Update() REQUIRES(mutex_);

  const BaseDirectory& base_;
  const Vaults vaults_;
  Mutex mutex_;
  std::map<std::string, Index> indexes_ GUARDED_BY(mutex_);  ///< by vault
  std::set<Fingerprint> missing_ GUARDED_BY(mutex_);         ///< of `indexes_`
};

}  // namespace txfs
