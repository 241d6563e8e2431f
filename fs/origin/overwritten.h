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

/// The content that commits and undos overwrote in place in base files, while
/// the history keeps it for undo. A transaction that changed such a file shows
/// its remaining content as recorded (docs/recovery.md, "What the others see").
/// Thread-safe.
class OverwrittenContent {
 public:
  /// A state of a file; a different state may have different content.
  struct State {
    uint64_t size = 0;
    Timestamp mtime;
    bool operator==(const State&) const = default;
  };
  /// A commit or undo that wrote to a file or only set its time.
  struct Patch {
    std::string path;   ///< base path of the file at the time of the write
    std::string vault;  ///< ID of the vault with `before.name`
    Delta before;       ///< no ranges: nothing to restore
    std::optional<State> found;     ///< before it; none: unknown
    std::optional<State> after;     ///< after it; none: unknown or in progress
    std::optional<Timestamp> left;  ///< ctime of the file after it
    /// Start times of the commit, its undo, the undo of that, and so on. The
    /// last one belongs to this patch; the others have no plan left.
    std::vector<Timestamp> began;
  };
  using Patches = std::vector<std::shared_ptr<const Patch>>;  ///< newest first

  /// The recorded state of a base file.
  struct Noted {
    Fingerprint state;
    /// The record may have followed the base, except for its ctime.
    bool may_follow = false;
  };
  struct Since {
    Patches patches;  ///< to revert
    /// Whether the revert restores exactly the recorded content.
    bool exact = false;
  };

  /// `store`: the store's directory. Both outlive this.
  OverwrittenContent(const BaseDirectory& base, int store)
      : base_(base), store_(store), history_(store), vaults_(base, store) {}

  /// Sets the start of the transaction: it recorded nothing before.
  void Begin(Timestamp time);

  /// Finds the patches that changed the recorded file, at `path`, to its state
  /// `now`. Call after the read, to include all patches before it. ESTALE: the
  /// old content is no longer kept.
  Result<Since> Find(const Noted& noted, const std::string& path,
                     const struct stat& now);

  /// Replaces `out`, read from the file at `offset`, by the content before
  /// `patches`. ENOENT: it is no longer kept.
  Status Restore(const Patches& patches, uint64_t offset,
                 MutableByteSpan out) const;

 private:
  /// By st_ino of the file.
  using Commit = std::multimap<uint64_t, std::shared_ptr<const Patch>>;

  /// The patches of the file, newest first.
  Result<Patches> PatchesOf(const Fingerprint& state, const std::string& path);
  Status Update() REQUIRES(mutex_);
  Status UpdateIntent() REQUIRES(mutex_);
  [[nodiscard]] VaultStamp Stamp() const;
  Result<Commit> ReadCommit(const std::string& id) const;
  Result<Commit> Index(const CommitRecord& record, bool under_way) const;
  Result<std::vector<Timestamp>> BeganOf(
      const TransactionSummary& summary) const;
  /// Whether the patches of a commit since `time` are unknown.
  Result<bool> IsUnknownSince(Timestamp time);
  /// Start time of the newest commit with unknown patches.
  Result<Timestamp> FindUnknown() REQUIRES(mutex_);

  const BaseDirectory& base_;
  const int store_;
  const TransactionHistory history_;
  const Vaults vaults_;
  Mutex mutex_;
  VaultStamp stamp_ GUARDED_BY(mutex_);  ///< as VaultFiles::Index::stamp
  /// By commit ID, including commits without patches.
  std::map<std::string, Commit> done_ GUARDED_BY(mutex_);
  struct UnderWay {
    uint64_t ino = 0;  ///< identity of the intent file: st_ino and ctime
    Timestamp ctime;
    std::string id;
    Commit commit;
  };
  UnderWay under_way_ GUARDED_BY(mutex_);
  bool is_damaged_ GUARDED_BY(mutex_) = false;  ///< a plan cannot be read
  std::optional<Timestamp> unknown_ GUARDED_BY(mutex_);  ///< as FindUnknown
  Timestamp begin_ GUARDED_BY(mutex_);
};

}  // namespace txfs
