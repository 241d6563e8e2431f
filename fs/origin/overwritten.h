#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/origin/preimages.h"
#include "fs/vault/commit_step.h"
#include "fs/vault/vaults.h"
#include "journal/history.h"
#include "journal/support/mutex.h"

namespace txfs {

struct CommitRecord;

/// What commits and undos overwrote in place in files of the base, as long as
/// it is kept for undo: a transaction that changed something about such a file
/// goes on to show the rest as it was (docs/recovery.md, "What the others
/// see"). Thread-safe.
class OverwrittenContent {
 public:
  /// Of a file: in another one its content may be another.
  struct State {
    uint64_t size = 0;
    Timestamp mtime;
    bool operator==(const State&) const = default;
  };
  /// One that wrote to a file, or only set its time, or what takes that back.
  struct Patch {
    std::string path;   ///< of the file, in the base, when it was written to
    std::string vault;  ///< id of the vault that has `before.name`
    Delta before;       ///< of no ranges: nothing is to be restored
    std::optional<State> found;     ///< before it; none: not known
    std::optional<State> after;     ///< none: it is under way
    std::optional<Timestamp> left;  ///< the file's ctime then
    /// When the commit, its undo, the undo of that, ... began, this one last;
    /// the others have no plan any more.
    std::vector<Timestamp> began;
  };
  using Patches = std::vector<std::shared_ptr<const Patch>>;  ///< newest first

  /// What a transaction has of a file of the base.
  struct Noted {
    Fingerprint state;
    /// The record may have followed the base since, but for its ctime.
    bool may_follow = false;
  };
  struct Since {
    Patches patches;  ///< to be restored
    /// Whether that makes of the file exactly what it was.
    bool exact = false;
  };

  /// `store`: the store's directory. Both outlive this.
  OverwrittenContent(const BaseDirectory& base, int store)
      : base_(base), store_(store), history_(store), vaults_(base, store) {}

  /// The transaction began at `time`: it has noted nothing before that.
  void Begin(Timestamp time);

  /// What made of the base file that was noted, at `path`, what it is by `now`.
  /// Called after the file was read, it has what was written before that.
  /// ESTALE when it is no longer kept.
  Result<Since> Find(const Noted& noted, const std::string& path,
                     const struct stat& now);

  /// Puts what the file had at `offset` before `patches` in place of `out`,
  /// which was read from it there. ENOENT when it is not kept any more.
  Status Restore(const Patches& patches, uint64_t offset,
                 MutableByteSpan out) const;

 private:
  /// By st_ino of the file.
  using Commit = std::multimap<uint64_t, std::shared_ptr<const Patch>>;

  /// Those of the file, newest first.
  Result<Patches> PatchesOf(const Fingerprint& state, const std::string& path);
  Status Update() REQUIRES(mutex_);
  Status UpdateIntent() REQUIRES(mutex_);
  [[nodiscard]] VaultStamp Stamp() const;
  Result<Commit> ReadCommit(const std::string& id) const;
  Result<Commit> Index(const CommitRecord& record, bool under_way) const;
  Result<std::vector<Timestamp>> BeganOf(
      const TransactionSummary& summary) const;
  /// Whether of a commit since `time` nothing is known any more.
  Result<bool> IsUnknownSince(Timestamp time);
  /// When the newest of those began.
  Result<Timestamp> FindUnknown() REQUIRES(mutex_);

  const BaseDirectory& base_;
  const int store_;
  const TransactionHistory history_;
  const Vaults vaults_;
  Mutex mutex_;
  VaultStamp stamp_ GUARDED_BY(mutex_);  ///< as VaultFiles::Index::stamp
  /// By id, also of those that patched nothing.
  std::map<std::string, Commit> done_ GUARDED_BY(mutex_);
  struct UnderWay {
    uint64_t ino = 0;  ///< of the intent, and its time of change
    Timestamp ctime;
    std::string id;
    Commit commit;
  };
  UnderWay under_way_ GUARDED_BY(mutex_);
  bool is_damaged_ GUARDED_BY(mutex_) = false;           ///< some plan
  std::optional<Timestamp> unknown_ GUARDED_BY(mutex_);  ///< as FindUnknown
  Timestamp begin_ GUARDED_BY(mutex_);
};

}  // namespace txfs
