#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/commit/committer.h"
#include "fs/diff/changes.h"
#include "fs/planning/commit_limits.h"
#include "fs/planning/resolution.h"
#include "fs/posix/filesystem.h"
#include "fs/workspace/archive.h"
#include "journal/savepoint.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs {

struct WorkspaceOptions {
  std::string path;  ///< workspace directory; made absolute
  /// The directory itself, for when something may be mounted over it; `path` is
  /// absolute then, and not looked up.
  std::shared_ptr<UniqueFd> base;
  std::string store;  ///< absolute path of the store's directory
  /// The directory itself, of which it is known whose it is; none: `store` is
  /// looked up, and made if it is missing and `begin`.
  std::shared_ptr<UniqueFd> store_directory;
  std::string name;   ///< of the transaction that is resumed or begun
  bool begin = true;  ///< begin it when it is not open; else an error
  /// There will be a next transaction: what takes long about its beginning is
  /// done ahead, in the background.
  bool prepares = false;
  /// Does in the background what is due when a transaction has begun or ended:
  /// frees what others left, and what `prepares` asks for. Tests that count
  /// calls switch it off.
  bool collects = true;
  /// Makes, in the background, checksums of what commits took away.
  bool sums = false;
  JournalOptions journal;
  FilesystemOptions filesystem;
  Retention retention;
};

struct CommitOptions {
  std::string message;
  /// Only these, what is below them and what they need; the transaction goes on
  /// with the rest. Empty: all of it.
  std::vector<std::string> paths;
  ResolveOptions conflicts;           ///< of a commit of everything
  std::vector<std::string> accepted;  ///< limits that it may exceed
};

/// Of a commit that is only planned.
struct PlanRequest {
  std::vector<std::string> paths;     ///< as of CommitOptions
  std::vector<std::string> accepted;  ///< as of CommitOptions
};

struct CommitReport {
  std::string id;  ///< of the transaction that ended, or of the partial commit
  bool partial = false;
  /// Id of the part whose commit had stopped half-way, and was finished first.
  std::string finished;
  bool nothing = false;  ///< there was nothing to commit: all is as it was
  uint64_t changes = 0;  ///< that were committed
  std::vector<Conflict> conflicts;  ///< non-empty: nothing was committed
  /// That it exceeds; nothing was committed if one of them stops it.
  std::vector<LimitExcess> limits = {};
  std::vector<Conflict> resolved;  ///< conflicts settled as the options say
  std::vector<std::string>
      withheld;  ///< sentences: what did not reach the base
  std::vector<std::string> savepoints;  ///< that went with a partial commit
  std::vector<RuleCount> denied;        ///< what was refused until then

  [[nodiscard]] bool committed() const {
    return conflicts.empty() && !nothing && !AnyStops(limits);
  }
};

/// What was thrown away of a transaction that goes on.
struct PartDiscard {
  uint64_t changes = 0;
  std::vector<std::string> savepoints;  ///< that went with it
};

struct DiscardReport {
  std::string id;        ///< of the transaction that ended; empty: none had
                         ///< begun, for the disk was full
  uint64_t changes = 0;  ///< what was touched, also where it was equal
};

struct RollbackReport {
  Savepoint savepoint;
  uint64_t undone = 0;  ///< changes
};

/// What a commit would do.
struct PlanReport {
  std::string id;  ///< of the transaction
  uint64_t changes = 0;
  std::vector<std::string> steps;  ///< in words, in order
  std::vector<Conflict> conflicts;
  std::vector<LimitExcess> limits;  ///< that it would exceed
  std::vector<std::string> withheld;
};

struct WorkspaceStatus {
  std::string id, name, workspace, store;
  TransactionState state = TransactionState::kActive;
  Timestamp created;
  uint64_t changes = 0;      ///< net changes, as Changes(false) counts them
  uint64_t operations = 0;   ///< logged so far
  uint64_t store_bytes = 0;  ///< on disk
  std::vector<Savepoint> savepoints;  ///< oldest first
  std::vector<RuleCount> denied;      ///< what was refused, by rule
};

/// A workspace with its store and one of its open transactions: what the daemon
/// serves, and what a command opens when no daemon runs. Thread-safe.
class Workspace : public Archive {
 public:
  /// Opens store and base, and resumes the transaction of that name or begins
  /// it. A transaction found committing is rolled forward first. Errors are for
  /// people: path and remedy.
  static Result<std::unique_ptr<Workspace>> Open(
      const WorkspaceOptions& options);

  /// Discards the open transaction of that name without a look at what it did,
  /// for when the disk is too full to open it. Counts no changes. Errors as of
  /// Open.
  static Result<DiscardReport> DiscardUnread(const WorkspaceOptions& options);

  virtual Filesystem& filesystem() = 0;
  [[nodiscard]] virtual std::string transaction_id() const = 0;

  /// When the open transaction began.
  [[nodiscard]] virtual Timestamp created() const = 0;

  virtual Result<WorkspaceStatus> GetStatus() = 0;

  /// What a commit would find to be in conflict now.
  virtual Result<std::vector<Conflict>> FindConflicts() = 0;

  /// Net changes sorted by path (bytes). A renamed directory is one change;
  /// with `expand`, so is everything below it. `below`: only these paths and
  /// what is under them (either side); empty: all.
  virtual Result<std::vector<NetChange>> Changes(
      bool expand, const std::vector<std::string>& below = {}) = 0;

  /// The same since a savepoint (empty name: the newest), expanded. Before
  /// sides with an inode are read with ReadPast.
  virtual Result<std::vector<NetChange>> ChangesSince(
      const std::string& savepoint, const std::vector<std::string>& below) = 0;
  /// Reads from a file as it was at a savepoint.
  virtual Result<size_t> ReadPast(const std::string& savepoint, Ino ino,
                                  uint64_t offset, MutableByteSpan out) = 0;

  /// Applies the transaction, or a part of it, to the base; after a whole one
  /// the next begins. Open files, mount and working directories stay usable.
  /// Where the base would stay as it is, nothing happens. Conflicts are in the
  /// report. `progress`, if any, is called with everything frozen, and often.
  /// Errors: nothing changed at one of the paths.
  virtual Result<CommitReport> Commit(const CommitOptions& options,
                                      const CommitProgress& progress = {}) = 0;
  /// Plans a commit and touches nothing. With conflicts there are no steps.
  /// Errors as of Commit.
  virtual Result<PlanReport> PlanOnly(const PlanRequest& request) = 0;
  /// Throws the transaction away and begins the next one, whose id
  /// transaction_id() then is.
  virtual Result<DiscardReport> Discard() = 0;
  /// Throws away what it did at and below `paths`, and what would make no sense
  /// without. Errors as of Commit.
  virtual Result<PartDiscard> DiscardPart(
      const std::vector<std::string>& paths) = 0;

  /// Marks this moment of the transaction. An empty name: the next of sp1,
  /// sp2, ...
  virtual Result<Savepoint> MakeSavepoint(const std::string& name) = 0;
  /// Takes back everything since a savepoint, which stays; later ones go. An
  /// empty name: the newest. Open files, mount and working directories stay
  /// usable.
  virtual Result<RollbackReport> Rollback(const std::string& name) = 0;

  /// Logged changes from `first` on.
  virtual Status ReadLog(Lsn first,
                         const std::function<bool(const LogEntry&)>& visit) = 0;

  /// What policies refused in the transaction.
  virtual Result<Denials> ReadDenials() = 0;
  /// Another text whenever that is different.
  [[nodiscard]] virtual std::string DenialsVersion() = 0;

  /// Another transaction changed the base: looks at it again, so that nothing
  /// stale is shown.
  virtual Status Refresh() = 0;
  /// The same if there is a commit that the mount does not show.
  virtual Status CatchUp() = 0;

  /// From now on `policy` judges every operation that has not begun; null: all
  /// is allowed.
  virtual void UsePolicy(std::shared_ptr<const policy::Policy> policy) = 0;

  /// The workspace's directory, whatever is mounted over it.
  virtual Result<UniqueFd> OpenBase() = 0;

  /// StaleCaches::moved of what was told since it was last asked for.
  virtual std::vector<std::string> TakeMoved() = 0;
  /// Called after commit, discard, rollback and refresh with what the kernel
  /// may have cached; by a discard on several threads at once, and while
  /// operations wait for it: `listener` must not wait for one.
  virtual void OnStaleCaches(
      std::function<void(const StaleCaches&)> listener) = 0;

  /// Drains and closes the journal; the transaction stays open for the next
  /// Open. One with a name that only followed another, and in which nothing was
  /// done, is dropped: nobody asked for it. Nothing may be called after it.
  virtual Status Close() = 0;
};

}  // namespace txfs
