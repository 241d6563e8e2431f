#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/locate/context.h"
#include "cli/protocol/client.h"
#include "cli/run/run_directory.h"
#include "journal/support/result.h"

namespace txfs::cli {

inline constexpr std::string_view kRunPrefix = "run-";
inline constexpr int kConflictCode = 3;
inline constexpr int kHeldCode = 4;
/// What a run is recorded with, and what it may write.
struct RunWords {
  std::vector<std::string> command;
  std::string profile;    ///< "": none
  RunLimits limits = {};  ///< Begin takes those of `on_workspace`
  bool clean = false;     ///< only in a transaction that has no changes
};
/// The workspace of a run that stands in no mount, but in `directory`.
Result<std::string> WorkspaceOf(const std::string& directory);
/// The mountpoint of the transaction of `workspace` that has no name.
std::optional<std::string> MountpointOf(const std::string& workspace);
/// Why a commit of a run whose report has `depends` was none.
[[nodiscard]] std::string WhyKept(const CommitReport& report);
/// A name for what belongs to one run: kRunPrefix and six characters.
Result<std::string> MakeRunName();

/// The transaction of a run.
class RunTransaction {
 public:
  /// Finds the workspace of `context.directory` and begins the run in its
  /// mount, or in a transaction and a mount of its own. `name`: of that
  /// transaction; none: the mount, if no other run uses it. `on_workspace` is
  /// called with the workspace before anything begins, and returns what the run
  /// may write.
  static Result<std::unique_ptr<RunTransaction>> Begin(
      const Context& context, const std::optional<std::string>& name,
      RunWords words,
      const std::function<Result<RunLimits>(const std::string&)>& on_workspace);
  /// Rolls back a run that has not ended.
  ~RunTransaction();
  RunTransaction(const RunTransaction&) = delete;
  RunTransaction& operator=(const RunTransaction&) = delete;

  [[nodiscard]] const std::string& workspace() const {
    return place_.workspace;
  }
  [[nodiscard]] const std::string& mountpoint() const {
    return place_.mountpoint;
  }
  /// The name of a transaction of its own, else "".
  [[nodiscard]] const std::string& name() const { return place_.name; }
  [[nodiscard]] const std::string& id() const { return id_; }
  /// Whether the run has not ended.
  [[nodiscard]] bool is_open() const { return open_; }
  /// Whether the daemon had died when a commit failed.
  [[nodiscard]] bool is_lost() const { return lost_; }
  /// Whether a commit has stopped half-way.
  Result<bool> IsHalfWay();
  /// Denials in the transaction before the run, and now.
  [[nodiscard]] const std::vector<RuleCount>& denied_before() const {
    return denied_before_;
  }
  Result<std::vector<RuleCount>> Denied();
  /// A descriptor of the daemon's process.
  [[nodiscard]] int daemon() const { return daemon_.get(); }
  /// From MakeLimitSignal, for the limits of Begin; -1: there are none.
  [[nodiscard]] int limit_signal() const {
    return begun_.limit_signal ? begun_.limit_signal->get() : -1;
  }
  /// Another connection to the daemon.
  [[nodiscard]] Result<Client> Connect() const;
  /// Changes that the transaction had before the run.
  [[nodiscard]] uint64_t earlier() const { return begun_.changes; }

  /// `pid`: the process that ends the sandbox.
  Status Started(pid_t pid) { return client_.StartRun(pid); }
  /// `groups`: the control groups that the run may make.
  Status Announce(const std::vector<std::string>& groups) {
    return client_.AnnounceGroups(groups);
  }
  /// `inode`: the pipe of the processes that make the sandbox.
  Status AnnouncePipe(uint64_t inode) { return client_.AnnouncePipe(inode); }
  /// `path`: the socket that the run may make.
  Status AnnounceSocket(const std::string& path) {
    return client_.AnnounceSocket(path);
  }
  /// The changes of the run.
  Result<std::vector<NetChange>> Changes();
  /// Makes a savepoint, and returns to it.
  Result<std::string> Mark();
  Status ReturnTo(const std::string& savepoint);

  /// Says how the run ended, for its record.
  void Explain(std::string why, int code) {
    why_ = std::move(why);
    code_ = code;
  }
  /// Commits `changes`, those of the run, unless that takes a change from
  /// before it (CommitReport::depends). If nothing was committed, or after an
  /// error of a daemon that is not lost, the changes stay in the transaction.
  Result<CommitReply> Commit(const std::string& message,
                             const std::vector<NetChange>& changes);
  Status RollBack();
  /// Keeps the changes in the transaction.
  Status Keep();

 private:
  struct Place {
    std::string workspace, mountpoint;
    std::string name;        ///< of a transaction of its own; "": the mount's
    RunDirectory directory;  ///< made to mount at; none: a mount that stays

    [[nodiscard]] bool is_own() const { return !directory.path().empty(); }
  };

  RunTransaction(Place place, Client client, RunBegun begun)
      : place_(std::move(place)),
        client_(std::move(client)),
        begun_(std::move(begun)) {}
  static Result<std::unique_ptr<RunTransaction>> BeginIn(Place place,
                                                         const RunWords& words);
  static Result<Place> MountOwn(const Context& context,
                                const std::string& workspace,
                                const std::optional<std::string>& name);
  Status GoBack(Client& client) const;
  /// Whether the daemon has died, after a request failed.
  [[nodiscard]] bool IsDaemonGone();
  /// Removes what a dead daemon leaves of a mount of its own, and of one over
  /// the workspace itself.
  Status ClearMount() const;
  /// Rolls back without the daemon, which has died.
  Status RollBackInStore();
  /// The commit that the daemon did before it died, during a commit; `lost` if
  /// there is none.
  Result<CommitReply> CommitInStore(Error lost);
  /// Records what becomes of the run; a failure to do so fails nothing.
  void Record(RunOutcome outcome, bool done);
  /// Ends the watch over the run, and a mount of its own with all that its
  /// daemon leaves if it was killed.
  Status End();
  /// Asks the daemon to end the mount of the run, and waits until it has ended.
  Status EndMount();

  const Place place_;
  Client client_;
  const RunBegun begun_;
  std::string id_;      ///< of the transaction
  std::string run_id_;  ///< in the record
  std::vector<RuleCount> denied_before_;
  UniqueFd daemon_;
  bool open_ = true;
  bool lost_ = false;       ///< the daemon
  bool unchanged_ = false;  ///< when it was last asked
  bool is_back_ = false;    ///< rolled back
  std::string why_;         ///< Explain
  int code_ = 0;
};

}  // namespace txfs::cli
