#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fs/base_directory.h"
#include "fs/base_mounts.h"
#include "fs/commit_step.h"
#include "fs/preimages.h"
#include "fs/vaults.h"
#include "journal/base/mutex.h"
#include "journal/history.h"

namespace txfs {

struct CommitRecord;

/// What commits and undos overwrote in place in files of the base, as long as
/// it is kept for undo: a transaction that changed something about such a file
/// goes on to show the rest as it was (docs/recovery.md, "What the others
/// see"). Thread-safe.
class OverwrittenContent {
 public:
  /// One that wrote to a file, and what takes that back.
  struct Patch {
    std::string vault;  ///< id of the vault that has `before.name`
    Delta before;
    struct State {
      uint64_t size = 0;
      Timestamp mtime;
      bool operator==(const State&) const = default;
    };
    std::optional<State> found;  ///< that of the file before it, if known
    std::optional<State> after;  ///< when it was done; none: it is under way
    Timestamp left;              ///< the file's ctime then
    /// Whether it takes a commit back; what takes back an undo does not.
    bool takes_back = false;
    std::string mount;  ///< of the file, as BaseMounts::Of
    Timestamp ended;
  };
  using Patches = std::vector<Patch>;  ///< newest first

  /// `store`: the store's directory. Both outlive this.
  OverwrittenContent(const BaseDirectory& base, int store)
      : base_(base), store_(store), history_(store), vaults_(base, store) {}

  /// Those that made of the base file at `path`, which was in `state`, what it
  /// is; none where nobody did, or it is not kept. Called after the file was
  /// read, it has what was written before that.
  Patches Since(const Fingerprint& state, const std::string& path);

  /// Puts what the file had at `offset` before `patches` in place of `out`,
  /// which was read from it there. ENOENT when it is not kept any more.
  Status Restore(const Patches& patches, uint64_t offset,
                 MutableByteSpan out) const;

 private:
  /// By st_ino of the file.
  using Commit = std::multimap<uint64_t, Patch>;

  void Update() REQUIRES(mutex_);
  [[nodiscard]] VaultStamp Stamp() const;
  Commit Index(const CommitRecord& record, bool under_way) const
      REQUIRES(mutex_);

  const BaseDirectory& base_;
  const int store_;
  const TransactionHistory history_;
  const Vaults vaults_;
  Mutex mutex_;
  VaultStamp stamp_ GUARDED_BY(mutex_);  ///< as VaultFiles::Index::stamp
  /// By id, without those that patched nothing, but for their id.
  std::map<std::string, Commit> done_ GUARDED_BY(mutex_);
  Commit under_way_ GUARDED_BY(mutex_);
  std::optional<BaseMounts> mounts_ GUARDED_BY(mutex_);
};

}  // namespace txfs
