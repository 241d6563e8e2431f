#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/diff/file_change.h"
#include "cli/protocol/connection.h"
#include "cli/protocol/judgement.h"
#include "cli/protocol/pending.h"
#include "fs/workspace/workspace.h"
#include "policy/sources.h"

namespace txfs::cli {

struct StatusReply {
  WorkspaceStatus status;
  uint32_t pid = 0;        ///< 0: no daemon
  std::string mountpoint;  ///< empty: not mounted
};
/// The part of CommitOptions that is sent to the daemon.
struct CommitRequest {
  std::string message;
  std::vector<std::string> paths;  ///< none: everything
  OnConflict on_conflict = OnConflict::kFail;
  bool markers = false;
  std::vector<std::string> accepted = {};
  std::vector<std::string> accepted_paths = {};
  bool without_held = false;
};
struct CommitReply {
  CommitReport report;
  std::string next;  ///< id of the transaction that began; empty: none
};
struct DiscardReply {
  std::string id;
  uint64_t changes = 0;
  std::string next;                     ///< as in CommitReply
  std::vector<std::string> savepoints;  ///< ended by a partial discard
};
struct LogQuery {
  uint64_t first = 1, count = 0, last = 0;  ///< 0: no limit
  std::string op;                           ///< empty: all
  std::optional<std::string> path;
  bool denied = false;  ///< only denials
};
struct LogReply {
  std::vector<LogEntry> entries;
  uint64_t next = 1;
  bool end = true;
  std::string transaction;
  uint64_t dropped = 0;  ///< for denied: denials that are only counted
};

/// A call, and the names of the savepoints between which its changes are.
struct CallBounds {
  uint64_t number = 0;
  std::string since;
  std::string until;  ///< "": up to now
};

struct RunRequest {
  std::string id;    ///< of the run, and the name of its savepoint
  bool own = false;  ///< the mount was made for the run
  std::vector<std::string> command;
  std::string profile;  ///< "": none
  RunLimits limits;
  bool clean = false;  ///< fail if the transaction has changes
};
struct RunBegun {
  std::string savepoint;  ///< "" if the transaction is fresh
  uint64_t changes = 0;   ///< of the transaction before the run
  bool fresh = false;     ///< the transaction had no changes and no savepoints
  /// As from MakeLimitSignal; null without limits.
  std::shared_ptr<UniqueFd> limit_signal;
};

/// What becomes of a run.
struct RunVerdict {
  RunOutcome outcome = RunOutcome::kRunning;
  std::string why;
  int code = 0;
};

/// The requests of the control protocol as functions.
class Client {
 public:
  explicit Client(std::unique_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  Result<StatusReply> GetStatus();
  /// How many requests of each kind the kernel has sent to the mount.
  Result<std::map<std::string, uint64_t>> GetRequests();
  struct FullReply {
    StatusReply reply;
    Result<std::vector<Conflict>> conflicts;
  };
  /// GetStatus and FindConflicts, in less time than both.
  Result<FullReply> GetFullStatus();
  /// The conflicts that a commit would find now. Checks everything that the
  /// transaction touched.
  Result<std::vector<Conflict>> FindConflicts();
  /// `since`: a savepoint; none: since the transaction began. With `since`,
  /// `until`: a later one; "": up to now.
  Result<std::vector<NetChange>> Changes(
      bool expand, const std::vector<std::string>& below,
      const std::optional<std::string>& since = std::nullopt,
      const std::string& until = {});
  /// Reads whole contents of sides of changes, each at most `limit` bytes
  /// (EFBIG). `since` and `until` as in Changes.
  Result<Contents> ReadContents(
      std::span<const WantedSide> sides, uint64_t limit,
      const std::optional<std::string>& since = std::nullopt,
      const std::string& until = {});
  /// Reads one byte of each: the errors that ReadContents would return.
  Result<std::vector<Status>> ProbeContents(
      std::span<const WantedSide> sides,
      const std::optional<std::string>& since = std::nullopt,
      const std::string& until = {});
  /// Calls `progress` from time to time.
  Result<CommitReply> Commit(const CommitRequest& request,
                             const CommitProgress& progress = {});
  Result<PlanReport> Plan(const PlanRequest& request);
  /// Without paths: discards the whole transaction.
  Result<DiscardReply> Discard(const std::vector<std::string>& paths);
  Result<Savepoint> MakeSavepoint(const std::string& name);
  Result<RollbackReport> Rollback(const std::string& name);
  /// As Workspace::MarkCall.
  Result<uint64_t> MarkCall(const CallMark& mark);
  Result<std::vector<Call>> Calls();
  /// The call that a user means.
  Result<CallBounds> FindCallBounds(const std::string& id);
  Result<RevertReport> RevertCall(const std::string& id);
  /// Paths of directories that the last commit, discard, rollback or revert
  /// moved in the mount. A process with its working directory in one gets no
  /// path from getcwd(3) until it is looked up.
  [[nodiscard]] const std::vector<std::string>& moved() const { return moved_; }
  Result<LogReply> Log(const LogQuery& query);
  /// The policy files in force in the mount. Only from a daemon.
  Result<std::vector<policy::SourceText>> Policy();
  /// As Policy, after they were read again.
  Result<std::vector<policy::SourceText>> ReloadPolicy();
  /// The verdict of the rules in force; `request` is from JudgeRequest. Only
  /// from a daemon.
  Result<RuleVerdict> Judge(const Json& request);
  /// What `policy explain` prints; `request` is from ExplainRequest. EPROTO if
  /// the daemon is of an older version. Only from a daemon.
  Result<std::string> Explain(const Json& request);

  /// The questions that wait for an answer in the mount. Only from a daemon.
  Result<std::vector<PendingQuestion>> Pending();
  Status Answer(uint64_t id, bool yes);
  /// Denies all questions that wait for a user's answer.
  Status DenyWaiting();

  /// Begins a run of `txfs run` in the mount, with a savepoint unless the
  /// transaction is fresh, and records it. If this process
  /// dies before EndRun, the daemon rolls the run back; with `own`, it also
  /// discards the transaction and unmounts. kBusy if another run works there.
  /// Only from a daemon.
  Result<RunBegun> BeginRun(const RunRequest& request);
  /// `pid`: the process that ends the sandbox of the run.
  Status StartRun(pid_t pid);
  /// `groups`: control groups that the run may make, which the daemon removes
  /// if this process dies.
  Status AnnounceGroups(const std::vector<std::string>& groups);
  /// `path`: a socket that the run may make; as for groups.
  Status AnnounceSocket(const std::string& path);
  /// `inode`: a pipe that processes of the run have open, which the daemon ends
  /// if this process dies before StartRun.
  Status AnnouncePipe(uint64_t inode);
  /// Records what becomes of the run. `done`: it has; else the next commit,
  /// discard or rollback makes it so.
  Status SettleRun(const RunVerdict& verdict, bool done);
  Status EndRun();

  Result<UndoReport> Undo(const std::string& id);
  Result<CommitView> Show(const std::string& id);
  /// As ReadContents, of sides of changes of an ended commit.
  Result<Contents> ReadEnded(std::span<const WantedSide> sides, uint64_t limit);
  /// As ProbeContents.
  Result<std::vector<Status>> ProbeEnded(std::span<const WantedSide> sides);
  /// Limits that are not given are those of the workspace.
  Result<GcReport> CollectGarbage(std::optional<uint64_t> keep_commits,
                                  std::optional<uint64_t> keep_bytes);

 private:
  Result<std::vector<policy::SourceText>> AskPolicy(const char* request);

  std::unique_ptr<Connection> connection_;
  std::vector<std::string> moved_;
};

}  // namespace txfs::cli
