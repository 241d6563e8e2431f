#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/commit/committer.h"
#include "fs/diff/changes.h"
#include "fs/planning/commit_limits.h"
#include "fs/planning/held.h"
#include "fs/planning/resolution.h"
#include "fs/posix/filesystem.h"
#include "fs/posix/path_event.h"
#include "fs/veto/run_budget.h"
#include "fs/workspace/archive.h"
#include "fs/workspace/calls.h"
#include "journal/savepoint.h"
#include "journal/store.h"
#include "journal/support/result.h"

namespace txfs {

struct WorkspaceOptions {
  std::string path;  ///< workspace directory; made absolute
  /// The open directory, in case it is mounted over; `path` must then be
  /// absolute, and is not looked up.
  std::shared_ptr<UniqueFd> base;
  std::string store;  ///< absolute path of the store's directory
  /// The open directory, whose owner has been checked. None: `store` is looked
  /// up; it is made if it is missing and `begin` is true.
  std::shared_ptr<UniqueFd> store_directory;
  std::string name;   ///< of the transaction to resume or begin
  bool begin = true;  ///< begin the transaction if it is not open; false: fail
  /// There will be a next transaction: slow parts of its begin are done in
  /// advance, in the background.
  bool prepares = false;
  /// Does background work after a transaction has begun or ended: frees what
  /// other processes left, and does what `prepares` asks for. Tests that count
  /// calls set it to false.
  bool collects = true;
  /// Computes checksums of files in vaults in the background.
  bool sums = false;
  JournalOptions journal;
  FilesystemOptions filesystem;
  Retention retention;
};

struct CommitOptions {
  std::string message;
  /// Commit only these paths, everything below them, and what they depend on;
  /// the transaction continues with the rest. Empty: commit everything.
  std::vector<std::string> paths;
  /// Commits no change that has an effect outside of `paths`, at which there
  /// may be none, nor one at `except`: such changes stay (SelectWithin).
  bool within = false;
  /// Without `within`: paths at which nothing may be committed with `paths`;
  /// else nothing is, and CommitReport::depends says so.
  std::vector<std::string> except;
  ResolveOptions conflicts;  ///< for commits of everything
  /// Ids of limits that may be exceeded, and of rules that hold nothing.
  std::vector<std::string> accepted = {};
  std::vector<std::string> accepted_paths = {};  ///< at which nothing is held
  /// Commits all but what is held, which stays in the transaction.
  bool without_held = false;
};

/// Parameters of a plan; as in CommitOptions.
struct PlanRequest {
  std::vector<std::string> paths;
  std::vector<std::string> accepted = {};
  std::vector<std::string> accepted_paths = {};
  bool without_held = false;
  bool all_held = false;  ///< HeldQuery::whole
};

struct CommitReport {
  std::string id;  ///< of the ended transaction or the partial commit
  bool partial = false;
  /// Id of a partial commit that had stopped half-way and was finished first.
  std::string finished;
  bool nothing = false;  ///< there was nothing to commit; all is as before
  uint64_t changes = 0;  ///< changes committed
  std::vector<Conflict> conflicts;  ///< non-empty: nothing was committed
  std::string depends;  ///< an excepted path on which the asked ones depend:
                        ///< nothing was committed; "": none
  /// Limits that it exceeds; nothing was committed if one of them stops it.
  std::vector<LimitExcess> limits = {};
  /// What rules hold; nothing was committed if it stops the commit.
  HeldReport held = {};
  std::vector<Conflict> resolved;  ///< conflicts that the options resolved
  std::vector<std::string>
      withheld;  ///< sentences about changes that did not reach the base
  std::vector<std::string> savepoints;  ///< ended by a partial commit
  std::vector<RuleCount> denied;        ///< denials until then, by rule

  [[nodiscard]] bool committed() const {
    return conflicts.empty() && depends.empty() && !nothing &&
           !AnyStops(limits) && !held.stops();
  }
};

/// The result of a partial discard.
struct PartDiscard {
  uint64_t changes = 0;
  std::vector<std::string> savepoints;  ///< ended by the discard
};

struct DiscardReport {
  std::string id;  ///< of the ended transaction; empty: none had begun, because
                   ///< the disk was full
  uint64_t changes = 0;  ///< touched objects count even if equal
};

struct RollbackReport {
  Savepoint savepoint;
  uint64_t undone = 0;  ///< changes
};

/// A path that later changes built on a call.
struct BuiltOn {
  std::string path, reason;
  std::vector<uint64_t> calls;  ///< in which they were made; of no call: none

  bool operator==(const BuiltOn&) const = default;
};

/// The result of a revert of a call.
struct RevertReport {
  uint64_t number = 0;   ///< of the call
  uint64_t as = 0;       ///< the call that the revert is; 0: nothing changed
  uint64_t changes = 0;  ///< paths that it changed
  std::vector<BuiltOn> built_on;  ///< non-empty: nothing was reverted
};

/// The result of a plan.
struct PlanReport {
  std::string id;  ///< of the transaction
  uint64_t changes = 0;
  std::vector<std::string> steps;  ///< descriptions, in order
  std::vector<Conflict> conflicts;
  std::vector<LimitExcess> limits;  ///< that the commit would exceed
  HeldReport held = {};             ///< that rules would hold
  std::vector<std::string> withheld;
};

struct WorkspaceStatus {
  std::string id, name, workspace, store;
  TransactionState state = TransactionState::kActive;
  Timestamp created;
  uint64_t changes = 0;      ///< net changes, as Changes(false) returns them
  uint64_t operations = 0;   ///< operations logged so far
  uint64_t store_bytes = 0;  ///< on disk
  std::vector<Savepoint> savepoints;  ///< oldest first, without those of calls
  uint64_t calls = 0;                 ///< calls with a mark
  std::vector<RuleCount> denied;      ///< denials, by rule
};

struct FullStatus {
  WorkspaceStatus status;
  Result<std::vector<Conflict>> conflicts;
};

/// A workspace with its store and one open transaction. The daemon serves it;
/// without a daemon, a command opens it. Thread-safe.
class Workspace : public Archive {
 public:
  /// Opens store and base, and resumes or begins the transaction named in
  /// `options`. First finishes a commit that is past its point of no return.
  /// Errors, with path and remedy, are for users.
  static Result<std::unique_ptr<Workspace>> Open(
      const WorkspaceOptions& options);

  /// Discards the open transaction named in `options` without reading it, for a
  /// disk that is too full to open it. Does not count changes. Errors as Open.
  static Result<DiscardReport> DiscardUnread(const WorkspaceOptions& options);

  virtual Filesystem& filesystem() = 0;
  [[nodiscard]] virtual std::string transaction_id() const = 0;

  /// When the open transaction began.
  [[nodiscard]] virtual Timestamp created() const = 0;

  virtual Result<WorkspaceStatus> GetStatus() = 0;

  /// The conflicts that a commit would find now.
  virtual Result<std::vector<Conflict>> FindConflicts() = 0;

  /// Both, with one look at the base where that is enough.
  virtual Result<FullStatus> GetFullStatus() {
    return FullStatus{TRY(GetStatus()), FindConflicts()};
  }

  /// Passes the net changes to `visit`, sorted by path (bytes). A renamed
  /// directory is one change; with `expand`, everything below it is listed,
  /// too. `below`: only changes of which either side is one of these paths or
  /// below one; empty: all.
  virtual Status VisitChanges(bool expand,
                              const std::vector<std::string>& below,
                              const ChangeVisitor& visit) = 0;
  /// The same as a list.
  Result<std::vector<NetChange>> Changes(
      bool expand, const std::vector<std::string>& below = {});

  /// Changes since a savepoint (empty name: the newest), up to the savepoint
  /// `until` (empty: up to now), expanded. Use ReadPast for before sides that
  /// have an inode, and with `until` for after sides, too.
  virtual Result<std::vector<NetChange>> ChangesSince(
      const std::string& savepoint, const std::string& until,
      const std::vector<std::string>& below) = 0;
  /// Reads from a file as it was at a savepoint.
  virtual Result<size_t> ReadPast(const std::string& savepoint, Ino ino,
                                  uint64_t offset, MutableByteSpan out) = 0;

  /// Applies the transaction, or a part of it, to the base. After a whole
  /// commit the next transaction begins. Open files, mount and working
  /// directories stay usable. Does nothing if the base would not change.
  /// Conflicts are in the report. `progress` is called often, while all
  /// operations are frozen. Error if there is no change at one of the paths.
  virtual Result<CommitReport> Commit(const CommitOptions& options,
                                      const CommitProgress& progress = {}) = 0;
  /// Plans a commit and changes nothing. With conflicts there are no steps.
  /// Errors as Commit.
  virtual Result<PlanReport> PlanOnly(const PlanRequest& request) = 0;
  /// Discards the transaction and begins the next one, whose id
  /// transaction_id() then returns.
  virtual Result<DiscardReport> Discard() = 0;
  /// Discards the changes at and below `paths`, and those that depend on them.
  /// Errors as Commit.
  virtual Result<PartDiscard> DiscardPart(
      const std::vector<std::string>& paths) = 0;

  /// Makes a savepoint. An empty name: the next of sp1, sp2, ...
  virtual Result<Savepoint> MakeSavepoint(const std::string& name) = 0;
  /// Undoes everything since a savepoint; the savepoint stays, later ones are
  /// dropped. An empty name: the newest. Open files, mount and working
  /// directories stay usable.
  virtual Result<RollbackReport> Rollback(const std::string& name) = 0;

  // Calls of agents (docs/calls.md).

  /// Marks the begin of a call and returns its number; with `mark.end` the end
  /// of the newest one with these ids. 0: there is none, and nothing is marked.
  virtual Result<uint64_t> MarkCall(const CallMark& mark) = 0;
  /// All calls that the log has, the last at the end.
  virtual Result<std::vector<Call>> Calls() = 0;
  /// The call that a user means (FindCall).
  virtual Result<CallSpan> FindSpan(const std::string& wanted) = 0;
  /// The savepoints that mark calls, oldest first.
  virtual std::vector<Savepoint> CallMarks() = 0;
  /// Takes back what one call changed, as a call of its own, unless later
  /// changes were built on it.
  virtual Result<RevertReport> RevertCall(const std::string& wanted) = 0;

  // Runs of `txfs run`, recorded in the transaction.

  /// Adds one that begins, and where in the log that is.
  virtual void BeginRun(const RunRecord& run) = 0;
  /// Prepares its end: if the transaction or a part of it ends now, the history
  /// gets `run` as its record.
  virtual void SettleRun(const RunRecord& run) = 0;
  /// Records that it ended as `run`, unless it ended with a transaction.
  virtual void EndRun(const RunRecord& run) = 0;
  /// Those of the open transaction, the last at the end.
  virtual std::vector<RunRecord> Runs() = 0;
  /// Refuses (EDQUOT) what operations write and make from now on beyond
  /// `limits`; none: nothing. `on_exceeded` is called for each refusal, with
  /// locks held.
  virtual void LimitRun(const RunLimits& limits,
                        std::function<void(RunLimit)> on_exceeded) = 0;

  /// Visits logged changes from `first` on.
  virtual Status ReadLog(Lsn first,
                         const std::function<bool(const LogEntry&)>& visit) = 0;

  /// The denials of the transaction.
  virtual Result<Denials> ReadDenials() = 0;
  /// A text that changes whenever the denials do.
  [[nodiscard]] virtual std::string DenialsVersion() = 0;

  /// Reads the base again after a commit of another transaction, so that the
  /// mount shows nothing stale.
  virtual Status Refresh() = 0;
  /// As Refresh, if there is a commit that the mount does not show.
  virtual Status CatchUp() = 0;

  /// Makes `policy` judge all operations that have not begun; null: allows
  /// everything.
  virtual void UsePolicy(std::shared_ptr<const policy::Policy> policy) = 0;

  /// Opens the workspace's directory, beneath mounts over it.
  virtual Result<UniqueFd> OpenBase() = 0;

  /// StaleCaches::moved of all notifications since the last call.
  virtual std::vector<std::string> TakeMoved() = 0;
  /// Sets the listener for stale caches of the kernel, after commit, discard,
  /// rollback and refresh. A discard calls it on several threads at once while
  /// operations wait for the discard, so `listener` must not wait for an
  /// operation.
  virtual void OnStaleCaches(
      std::function<void(const StaleCaches&)> listener) = 0;

  /// Sets the listener for changes that no process in the mount made, after the
  /// listener for stale caches: by discard, rollback, undo, and commits of
  /// other transactions. `listener` may wait for operations.
  virtual void OnPathEvents(
      std::function<void(const std::vector<PathEvent>&)> listener) = 0;

  /// Journals what queries found other programs to have changed. A daemon calls
  /// it before Close, since it knows names that the next one does not.
  virtual Status KeepFollowed() = 0;
  /// Drains and closes the journal; the transaction stays open for the next
  /// Open. Exception: a named transaction that succeeded another one and has no
  /// changes is dropped. Call nothing after Close.
  virtual Status Close() = 0;
};

}  // namespace txfs
